"""CD223: peer access broken."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Set, Tuple

from chainerdoctor.facts.fabric import GpuPair, NvLink
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list
from chainerdoctor.snapshot import Snapshot

#: What can be changed about each of NVML's reasons; the others are properties of the cards.
_MENDABLE = {
    "chipset not supported": "Put the cards behind one root complex, or switch ACS and IOMMU off in the BIOS (bare metal).",
    "topology not supported": "Put the cards behind one root complex, or join them by an NVLink bridge.",
    "disabled by registry key": "Remove the driver's registry key that disables it (modprobe.d, NVreg_RegistryDwords).",
}


@rule("CD223", Severity.WARNING, needs=(GpuPair,), since="0.1")
def peer_access_broken(snapshot: Snapshot) -> Iterator[Finding]:
    """Two GPUs of a node cannot reach each other's memory, and something stands in the way that can be changed.

    Why it hurts: NCCL sends what they exchange through host memory, at a third of the speed or less, and refuses to start
    where NVLink joins the two.

    How to mend it: remove the registry key that disables it; put both cards behind one root complex or switch ACS and IOMMU
    off on bare metal. Cards that cannot do it at all (most GeForce), and pairs across processors without NVLink, between
    which NCCL takes the host anyway, are not complained of.

    Source: nvml.h, nvmlGpuP2PStatus_t; NCCL src/graph/paths.cc.
    """
    buses = {(seen.node, seen.fact.pci_bus_id): seen.fact.index for seen in snapshot.all(Gpu)}
    linked: Set[Tuple[str, int, Optional[int]]] = set()
    for link in snapshot.all(NvLink):
        if link.fact.active:
            # What is no GPU is an NVSwitch, which leads to all of them (None).
            linked.add((link.node, link.fact.gpu, buses.get((link.node, link.fact.remote_bus_id or ""))))
    broken: Dict[Tuple[str, str], List[Tuple[int, int]]] = {}
    for seen in snapshot.all(GpuPair):
        ways = {(seen.node, seen.fact.gpu, seen.fact.peer), (seen.node, seen.fact.gpu, None)}
        if seen.fact.path == "SYS" and not ways & linked:
            continue  # NCCL goes through the host there anyway
        for state in (seen.fact.read, seen.fact.write):
            if state in _MENDABLE:
                pair = (min(seen.fact.gpu, seen.fact.peer), max(seen.fact.gpu, seen.fact.peer))
                pairs = broken.setdefault((seen.node, state), [])
                if pair not in pairs:
                    pairs.append(pair)
    for (node, state), pairs in broken.items():
        shown = ", ".join(f"{one}–{other}" for one, other in sorted(pairs)[:8])
        yield Finding(
            where=f"{node}/{device_list(index for pair in pairs for index in pair)}",
            message=f"{len(pairs)} pair{'s' if len(pairs) > 1 else ''} of GPUs cannot reach each other directly",
            remedy=_MENDABLE[state],
            evidence=(Evidence(f"pairs {shown}", state, "ok"),),
        )
