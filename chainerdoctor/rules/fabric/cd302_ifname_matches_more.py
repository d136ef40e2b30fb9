"""CD302: ifname matches more."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.fabric import NetworkInterface, NetworkSurvey
from chainerdoctor.facts.stack import EnvironmentSurvey
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.interface_choice import names_more
from chainerdoctor.snapshot import Snapshot


@rule("CD302", Severity.WARNING, needs=(EnvironmentSurvey, NetworkSurvey), since="0.1")
def ifname_matches_more(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL_SOCKET_IFNAME names more interfaces than were meant, because it matches by prefix.

    Why it hurts: eth1 also takes eth10 and eth1.100; a VLAN or a second card joins the ring, and ranks on different
    nodes choose different networks.

    How to mend it: write = before the name to match it exactly: NCCL_SOCKET_IFNAME==NAME in the shell means the
    value =NAME.

    Source: NCCL user guide, NCCL_SOCKET_IFNAME.
    """
    return names_more(
        snapshot, "NCCL_SOCKET_IFNAME", ((seen.node, seen.fact.name) for seen in snapshot.all(NetworkInterface))
    )
