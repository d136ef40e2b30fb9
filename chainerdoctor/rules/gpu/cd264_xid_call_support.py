"""CD264: xid call support."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.xids import xids
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables import xid as table


@rule("CD264", Severity.ERROR, needs=(KernelLog,), since="0.1")
def xid_call_support(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU reported an Xid error for which NVIDIA asks to call support.

    Why it hurts: the GPU cannot repair itself.

    How to mend it: take the GPU out of use and open a case with the output of nvidia-bug-report.sh.

    Source: docs.nvidia.com/deploy/xid-errors, Xid catalog
    """
    return xids(
        snapshot,
        lambda action: action == table.SUPPORT,
        "Take the GPU out of use and open a support case with nvidia-bug-report.sh.",
    )
