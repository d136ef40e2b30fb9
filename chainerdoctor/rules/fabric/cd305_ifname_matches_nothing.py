"""CD305: ifname matches nothing."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.fabric import NetworkInterface, NetworkSurvey
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.interface_choice import matches
from chainerdoctor.snapshot import Snapshot


@rule("CD305", Severity.ERROR, needs=(EnvironmentSurvey, NetworkSurvey), since="0.1")
def ifname_matches_nothing(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL_SOCKET_IFNAME names no interface that this node has.

    Why it hurts: a set NCCL_SOCKET_IFNAME switches the automatic choice off, so NCCL finds no interface and ends
    with "no socket interface found".

    How to mend it: list the interfaces with ip -br addr on that node and name one that all nodes have, or write a
    prefix such as eth.

    Source: NCCL user guide, NCCL_SOCKET_IFNAME.
    """
    present: Dict[str, List[str]] = {}
    for seen in snapshot.all(NetworkInterface):
        present.setdefault(seen.node, []).append(seen.fact.name)
    for setting in snapshot.all(EnvironmentVariable):
        value = setting.fact.value.strip()
        if setting.fact.name != "NCCL_SOCKET_IFNAME" or not value or setting.node not in present:
            continue
        if not any(matches(value, name) for name in present[setting.node]):
            yield Finding(
                where=setting.where,
                message=f"NCCL_SOCKET_IFNAME={value} matches no interface of this node",
                remedy="Name an interface that every node has (ip -br addr lists them), or unset it.",
                evidence=(Evidence("NCCL_SOCKET_IFNAME", value, "one of " + ", ".join(present[setting.node][:8])),),
            )
