"""CD435: rank stuck."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stalled import NEEDS, stalled
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import STUCK

_REMEDY = "Look at that rank's stacks in the run's folder for the line that blocks."


@rule("CD435", Severity.ERROR, needs=NEEDS, since="0.1")
def rank_stuck(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank is blocked outside communication, without using CPU or reading anything, while the others wait for it.

    Why it hurts: the whole job stands for one rank's data loading or lock.

    How to mend it: look at that rank's stacks (rank-*.stacks in the run's folder): they show the line that
    blocks, and other threads that hold what it waits for.
    """
    yield from stalled(snapshot, STUCK, _REMEDY)
