"""CD430: rank died."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stalled import NEEDS, stalled
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import DIED

_REMEDY = "Look at dmesg on that rank's node for the out-of-memory killer, and at the scheduler's limits."


@rule("CD430", Severity.ERROR, needs=NEEDS, since="0.1")
def rank_died(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank's process was gone without a word while others needed it.

    Why it hurts: the other ranks wait in their next collective until somebody ends them; the launcher often
    does, and its own message names only a signal.

    How to mend it: look at the kernel's log of that rank's node (dmesg) for its out-of-memory killer, at the
    scheduler's limits, and at a core file.
    """
    yield from stalled(snapshot, DIED, _REMEDY)
