"""CD324: NCCL bootstrap unreachable."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.workload import NcclReach
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD324", Severity.ERROR, needs=(NcclReach,), since="0.1")
def nccl_bootstrap_unreachable(snapshot: Snapshot) -> Iterator[Finding]:
    """A node cannot connect to the address at which NCCL on rank 0 waits for the other ranks.

    Why it hurts: creating the communicator hangs or fails on every rank. NCCL took the first interface that it liked
    (a container bridge, a VPN), or a firewall closes the ports between the nodes.

    How to mend it: name the right interface on all ranks, NCCL_SOCKET_IFNAME==eth0 (two equal signs: exactly this
    one), and open the ephemeral TCP ports between the nodes.

    Source: NCCL user guide, NCCL_SOCKET_IFNAME; reproduced with NCCL 2.18 to 2.28 between network namespaces.
    """
    refused: Dict[str, List[Tuple[int, NcclReach]]] = {}
    for seen in snapshot.all(NcclReach):
        if not seen.fact.reached:
            refused.setdefault(seen.node, []).append((seen.rank or 0, seen.fact))
    for node, rows in refused.items():
        rank, fact = rows[0]
        others = f" and {len(rows) - 1} more ranks of this node" if len(rows) > 1 else ""
        yield Finding(
            where=f"{node}/rank {rank}{others}",
            message="rank 0's NCCL cannot be reached from here",
            remedy="Set NCCL_SOCKET_IFNAME==NAME of the interface that joins the nodes, and open its TCP ports.",
            evidence=(Evidence(f"{fact.address} port {fact.port}", fact.detail or "no connection", "a connection"),),
        )
