"""CD376: ib port down."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LoggedIbPort
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place
from chainerdoctor.snapshot import Snapshot


@rule("CD376", Severity.WARNING, needs=(LoggedIbPort,), since="0.1")
def ib_port_down(snapshot: Snapshot) -> Iterator[Finding]:
    """An InfiniBand or RoCE port is not active.

    Why it hurts: NCCL leaves it out and the node has less bandwidth than the others, or none.

    How to mend it: check the cable and the switch port; state Init with physical LinkUp means that no subnet
    manager answers (start opensm).

    Source: ibstat(8)
    """
    for sighting in snapshot.all(LoggedIbPort):
        port = sighting.fact
        if port.state.lower() not in ("active", ""):
            yield Finding(
                f"{port.device} port {port.port}",
                f"the port is {port.state or 'not active'} (physically {port.physical or 'unknown'})",
                "Check cable and switch port; if it says Initializing, start a subnet manager.",
                (
                    Evidence(
                        place(port.path, port.line), f"{port.state}, {port.physical}, {port.layer}", "Active, LinkUp"
                    ),
                ),
                Location(port.path, port.line),
            )
