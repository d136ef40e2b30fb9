"""CD261: xid restart machine."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.xids import xids
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables import xid as table


@rule("CD261", Severity.ERROR, needs=(KernelLog,), since="0.1")
def xid_restart_machine(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU reported an Xid error that needs a restart of the machine.

    Why it hurts: the GPU cannot be reached any more (Xid 79: it has fallen off the bus).

    How to mend it: drain and restart the node; check power, seating and temperature; replace the card if it
    happens again.

    Source: docs.nvidia.com/deploy/xid-errors, Xid catalog
    """
    return xids(
        snapshot,
        lambda action: action == table.RESTART,
        "Drain and restart the node; replace the card if this returns.",
    )
