"""CD235: GPU copies wrong."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.workload import GpuCopy, GpuPeerCopy
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list
from chainerdoctor.snapshot import Snapshot


@rule("CD235", Severity.ERROR, needs=(GpuCopy, GpuPeerCopy), since="0.1", any_of=True)
def gpu_copies_wrong(snapshot: Snapshot) -> Iterator[Finding]:
    """Bytes that were copied to, from or between GPUs are not the bytes that arrived.

    Why it hurts: batches, gradients and snapshots are corrupted without an error. Between GPUs this is known where an
    IOMMU or PCIe access control redirects peer-to-peer traffic.

    How to mend it: between GPUs, turn the IOMMU off in the BIOS or boot with iommu=pt, and check with NVIDIA's
    p2pBandwidthLatencyTest; on one GPU, take it out of use and run dcgmi diag -r 3.

    Source: NCCL user guide, troubleshooting, "PCI Access Control Services".
    """
    alone: Dict[str, List[Tuple[int, str, int]]] = {}
    for copy in snapshot.all(GpuCopy):
        if copy.fact.wrong_bytes:
            alone.setdefault(copy.node, []).append((copy.fact.index, copy.fact.direction, copy.fact.wrong_bytes))
    for node, rows in alone.items():
        yield Finding(
            where=f"{node}/{device_list(index for index, _, _ in rows)}",
            message="copies arrive with wrong bytes",
            remedy=f"Take {device_list(index for index, _, _ in rows)} out of use and run dcgmi diag -r 3 there.",
            evidence=tuple(
                Evidence(f"GPU {index}: {way}", f"{wrong:,} wrong bytes", "0") for index, way, wrong in rows[:8]
            ),
        )
    between: Dict[str, List[Tuple[int, int, int]]] = {}
    for pair in snapshot.all(GpuPeerCopy):
        if pair.fact.wrong_bytes:
            between.setdefault(pair.node, []).append((pair.fact.index, pair.fact.other, pair.fact.wrong_bytes))
    for node, pairs in between.items():
        yield Finding(
            where=f"{node}/{device_list(number for one, two, _ in pairs for number in (one, two))}",
            message="copies from GPU to GPU arrive with wrong bytes",
            remedy="Turn the IOMMU off (BIOS, or boot with iommu=pt); until then set NCCL_P2P_DISABLE=1.",
            evidence=tuple(
                Evidence(f"GPU {one} to {two}", f"{wrong:,} wrong bytes", "0") for one, two, wrong in pairs[:8]
            ),
        )
