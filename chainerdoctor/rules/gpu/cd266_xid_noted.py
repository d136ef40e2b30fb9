"""CD266: xid noted."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.xids import xids
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables import xid as table


@rule("CD266", Severity.INFO, needs=(KernelLog,), since="0.1")
def xid_noted(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU reported an Xid that follows from another error or only records something.

    Why it hurts: by itself it needs nothing done; an earlier Xid of the same GPU is the one to mend. Xid 63
    says that a faulty memory row will be replaced at the next reset.

    How to mend it: look for the Xid before it; after 63, reset the GPU at the next occasion.

    Source: docs.nvidia.com/deploy/xid-errors, Xid catalog
    """
    return xids(
        snapshot,
        lambda action: action == table.CONSEQUENCE,
        "Look at the Xid before this one; after Xid 63 reset the GPU when it is idle.",
    )
