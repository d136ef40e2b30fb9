"""CD265: xid unknown."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.xids import xids
from chainerdoctor.snapshot import Snapshot


@rule("CD265", Severity.WARNING, needs=(KernelLog,), since="0.1")
def xid_unknown(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU reported an Xid number that is not in the catalog of known ones.

    Why it hurts: what it means is not known here; the driver reports Xids only for errors.

    How to mend it: look it up for your driver's version at docs.nvidia.com/deploy/xid-errors, and keep
    nvidia-bug-report.sh's output.

    Source: docs.nvidia.com/deploy/xid-errors, Xid catalog
    """
    return xids(
        snapshot,
        lambda action: action is None,
        "Look the number up at docs.nvidia.com/deploy/xid-errors for your driver.",
    )
