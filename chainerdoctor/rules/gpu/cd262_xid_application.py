"""CD262: xid application."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.xids import xids
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables import xid as table


@rule("CD262", Severity.WARNING, needs=(KernelLog,), since="0.1")
def xid_application(snapshot: Snapshot) -> Iterator[Finding]:
    """A program made a GPU report an Xid error (illegal address, exception, contained memory error).

    Why it hurts: the program's GPU context is lost, and its rank is gone. Most are faults of a program: a
    custom kernel, an index out of range.

    How to mend it: run with CUDA_LAUNCH_BLOCKING=1 and compute-sanitizer; if Xid 94 or the same GPU under
    different programs turns up again, look at its ECC counters.

    Source: docs.nvidia.com/deploy/xid-errors, Xid catalog
    """
    return xids(
        snapshot,
        lambda action: action == table.APPLICATION,
        "Restart the program; find the kernel with CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer.",
    )
