"""CD260: xid reset gpu."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.xids import xids
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables import xid as table


@rule("CD260", Severity.ERROR, needs=(KernelLog,), since="0.1")
def xid_reset_gpu(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU reported an Xid error that needs a reset of the GPU.

    Why it hurts: work on that GPU fails or is wrong until it is reset; the ranks on others wait.

    How to mend it: stop all processes on the GPU and run nvidia-smi -r -i N (or restart the node); if it comes
    back, have the GPU tested (Xid 48 with 63 or 64 pending is a memory fault).

    Source: docs.nvidia.com/deploy/xid-errors, Xid catalog
    """
    return xids(
        snapshot,
        lambda action: action == table.RESET,
        "Stop the processes on this GPU, run nvidia-smi --gpu-reset -i N, and have it tested if the error returns.",
    )
