"""CD437: ranks wait for each other."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stalled import NEEDS, stalled
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import CROSSED

_REMEDY = "Match every send with a receive on the other rank, and enter communicators in the same order everywhere."


@rule("CD437", Severity.ERROR, needs=NEEDS, since="0.1")
def ranks_wait_for_each_other(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks wait for each other in calls that do not meet: messages that nobody sends, or different communicators.

    Why it hurts: none of them can go on.

    How to mend it: match every send with a receive of the same pair, and let ranks enter communicators in the
    same order.
    """
    yield from stalled(snapshot, CROSSED, _REMEDY)
