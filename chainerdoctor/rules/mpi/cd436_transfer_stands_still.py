"""CD436: transfer stands still."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stalled import NEEDS, stalled
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import TRANSFER

_REMEDY = "Run chainerdoctor allreduce-bench on these hosts, and chainerdoctor check-log on a log with NCCL_DEBUG=INFO."


@rule("CD436", Severity.ERROR, needs=NEEDS, since="0.1")
def transfer_stands_still(snapshot: Snapshot) -> Iterator[Finding]:
    """All ranks are in the same collective, and it does not end.

    Why it hurts: no rank is late: the library or the network below it does not move the data.

    How to mend it: run chainerdoctor allreduce-bench on the same hosts, and read a log of NCCL_DEBUG=INFO with
    chainerdoctor check-log.
    """
    yield from stalled(snapshot, TRANSFER, _REMEDY)
