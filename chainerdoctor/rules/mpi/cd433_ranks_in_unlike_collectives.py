"""CD433: ranks in unlike collectives."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stalled import NEEDS, stalled
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import DIFFER

_REMEDY = "Make the same collective calls in the same order on every rank, none under a test of the rank."


@rule("CD433", Severity.ERROR, needs=NEEDS, since="0.1")
def ranks_in_unlike_collectives(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks called different collectives at the same point, so that none can complete.

    Why it hurts: MPI and NCCL match collectives by their order alone: each rank waits for a call that the
    others never make.

    How to mend it: make the same calls in the same order on every rank. scatter_dataset and multi-node
    evaluators belong on all ranks, not under a test of the rank; initialise every link on every rank in the
    same iteration.
    """
    yield from stalled(snapshot, DIFFER, _REMEDY)
