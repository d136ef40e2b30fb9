"""CD302: ifname matches more."""

from __future__ import annotations

from typing import Dict, Iterator, Set

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.fabric import NetworkInterface, NetworkSurvey
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.interface_choice import exact_names
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
    present: Dict[str, Set[str]] = {}
    for seen in snapshot.all(NetworkInterface):
        present.setdefault(seen.node, set()).add(seen.fact.name)
    settings = [seen for seen in snapshot.all(EnvironmentVariable) if seen.fact.name == "NCCL_SOCKET_IFNAME"]
    for value, sightings in groups(settings, lambda fact: fact.value).items():
        for name in exact_names(value):
            node = next((s.node for s in sightings if name in present.get(s.node, set())), None)
            also = sorted(n for n in present.get(node or "", ()) if n.startswith(name) and n != name)
            if node is not None and also:
                yield Finding(
                    where=places([s for s in sightings if s.node == node]),
                    message=f"NCCL_SOCKET_IFNAME={value} also matches {', '.join(also)}",
                    remedy=f'Write NCCL_SOCKET_IFNAME=={name} (the value ="={name}") to match exactly, or exclude with ^.',
                    evidence=(
                        Evidence("NCCL_SOCKET_IFNAME", value, f"={name}"),
                        Evidence("also matched", ", ".join(also)),
                    ),
                )
