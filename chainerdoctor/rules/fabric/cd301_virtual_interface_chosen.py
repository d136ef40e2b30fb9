"""CD301: virtual interface chosen."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.fabric import NetworkInterface
from chainerdoctor.facts.stack import EnvironmentVariable
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.interface_choice import would_choose
from chainerdoctor.snapshot import Snapshot


@rule("CD301", Severity.WARNING, needs=(NetworkInterface,), since="0.1")
def virtual_interface_chosen(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL would choose a virtual interface to reach the other nodes.

    Why it hurts: without NCCL_SOCKET_IFNAME, NCCL takes InfiniBand interfaces first and then the first one that is
    not lo or docker*. A veth pair, bridge or tunnel that comes before the real card leads nowhere, and start-up
    ends in "connect timed out" or "no route to host".

    How to mend it: name the real interface on all ranks: NCCL_SOCKET_IFNAME=eth0 (the same for MPI:
    btl_tcp_if_include, or FI_TCP_IFACE).

    Source: NCCL user guide, NCCL_SOCKET_IFNAME; pytorch issue 68893; NVIDIA/nccl issue 529.
    """
    if len(snapshot.nodes) < 2:
        return
    named = {seen.node for seen in snapshot.all(EnvironmentVariable) if seen.fact.name == "NCCL_SOCKET_IFNAME"}
    by_node: Dict[str, List[NetworkInterface]] = {}
    for seen in snapshot.all(NetworkInterface):
        by_node.setdefault(seen.node, []).append(seen.fact)
    for node, interfaces in by_node.items():
        chosen = would_choose(interfaces)
        real = [i.name for i in interfaces if i.up and not i.virtual and i.addresses]
        if node not in named and chosen is not None and chosen.virtual and chosen.type != "loopback" and real:
            yield Finding(
                where=node,
                message=f"NCCL would talk to other nodes through {chosen.name}, which is virtual",
                remedy=f"Set NCCL_SOCKET_IFNAME={real[0]} on all ranks (mpiexec -genv or -x).",
                evidence=(Evidence("first choice", f"{chosen.name} ({', '.join(chosen.addresses)})", ", ".join(real)),),
            )
