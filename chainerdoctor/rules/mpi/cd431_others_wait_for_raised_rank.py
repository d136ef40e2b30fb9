"""CD431: others wait for raised rank."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stalled import NEEDS, stalled
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import RAISED

_REMEDY = "Mend the exception; start ranks by python -m mpi4py, so that one ends them all."


@rule("CD431", Severity.ERROR, needs=NEEDS, since="0.1")
def others_wait_for_raised_rank(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank raised an exception or left, and the others wait for it in a collective.

    Why it hurts: MPI does not end the other ranks for an exception of Python: the job hangs, and its log ends
    with the other ranks' silence.

    How to mend it: mend what the exception says. Start with python -m mpi4py, or set
    CHAINERMN_FORCE_ABORT_ON_EXCEPTION=1, so that an exception ends the job.
    """
    yield from stalled(snapshot, RAISED, _REMEDY)
