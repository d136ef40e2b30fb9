"""CD320: gpu far from network."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.fabric import NetworkInterface, NicPath, RdmaPort
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD320", Severity.WARNING, needs=(NicPath,), since="0.1")
def gpu_far_from_network(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU reaches every network card only across the link between processors (SYS).

    Why it hurts: what it sends to other nodes crosses the processors' link, without GPUDirect RDMA, at half of the speed or
    less; the ring is as slow as that.

    How to mend it: put a card near these GPUs, or keep runs over several nodes off them (CUDA_VISIBLE_DEVICES).

    Source: nvidia-smi topo -m, legend; NCCL user guide, NCCL_NET_GDR_LEVEL (PXB, or PHB, is the usual limit).
    """
    if len(snapshot.nodes) < 2:
        return
    usable = {(s.node, s.fact.device) for s in snapshot.all(RdmaPort) if s.fact.state == "ACTIVE"}
    rdma_nodes = {node for node, _ in usable}
    usable |= {
        (s.node, s.fact.name)
        for s in snapshot.all(NetworkInterface)
        if s.node not in rdma_nodes and s.fact.up and not s.fact.virtual and s.fact.addresses
    }
    ways: Dict[Tuple[str, str], List[NicPath]] = {}
    for seen in snapshot.all(NicPath):
        if (seen.node, seen.fact.device) in usable and seen.fact.rdma == (seen.node in rdma_nodes):
            ways.setdefault((seen.node, seen.fact.gpu_bus_id), []).append(seen.fact)
    far: Dict[str, List[str]] = {}
    for (node, bus_id), paths in ways.items():
        if all(path.path == "SYS" for path in paths):
            far.setdefault(node, []).append(bus_id)
    for node, bus_ids in far.items():
        total = len({bus_id for other, bus_id in ways if other == node})
        devices = ", ".join(path.device for path in ways[node, bus_ids[0]][:3])
        yield Finding(
            where=node,
            message=f"{len(bus_ids)} of {total} GPUs reach the network only across the processors' link",
            remedy="Put a network card near these GPUs, or keep runs over several nodes off them (CUDA_VISIBLE_DEVICES).",
            evidence=tuple(
                Evidence(f"GPU {bus_id} to {devices}", "SYS", "PIX, PXB, PHB or NODE") for bus_id in bus_ids[:8]
            ),
        )
