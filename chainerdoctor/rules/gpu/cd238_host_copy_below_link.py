"""CD238: host copy below link."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from chainerdoctor.facts.gpu import GpuPcie
from chainerdoctor.facts.workload import FROM_PINNED, TO_PINNED, GpuCopy
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.links import PCIE_LANE_GBS

#: Pinned copies reach 75 to 90 % of the link's rate; half of it is a fault and no matter of tuning.
SHARE = 0.5


@rule("CD238", Severity.WARNING, needs=(GpuCopy, GpuPcie), since="0.1")
def host_copy_below_link(snapshot: Snapshot) -> Iterator[Finding]:
    """Copies between pinned memory and a GPU reach less than half of what its PCIe link carries.

    Why it hurts: every batch goes this way, and gradients too where ranks exchange them through the host.

    How to mend it: bind the rank to the GPU's processor (numactl --cpunodebind), look for another device that shares
    the switch, and check the link with lspci -vv while it is busy.

    Source: rates of the PCI Express Base Specification, chainerdoctor/tables/links.py.
    """
    links = {(seen.node, seen.fact.index): seen.fact for seen in snapshot.all(GpuPcie)}

    def expected_gbs(node: str, fact: GpuCopy) -> Optional[float]:
        link = links.get((node, fact.index))
        if link is None or link.generation_max is None or link.width is None:
            return None
        lane = PCIE_LANE_GBS.get(link.generation_max)
        return None if lane is None else lane * link.width

    slow: Dict[str, List[Tuple[int, str, float, float]]] = {}
    for seen in snapshot.all(GpuCopy):
        fact = seen.fact
        expected = expected_gbs(seen.node, fact) if fact.direction in (FROM_PINNED, TO_PINNED) else None
        if expected is not None and fact.bandwidth_gbs < SHARE * expected:
            slow.setdefault(seen.node, []).append((fact.index, fact.direction, fact.bandwidth_gbs, expected))
    for node, found in slow.items():
        numbers = ",".join(dict.fromkeys(str(index) for index, *_ in sorted(found)))
        yield Finding(
            where=f"{node}/{device_list(index for index, *_ in found)}",
            message="pinned copies are far below the PCIe link's rate",
            remedy=f"Bind the rank to the processor of GPU {numbers} and check its link with lspci -vv while it is busy.",
            evidence=tuple(
                Evidence(f"GPU {index}: {direction}", f"{own:.1f} GB/s", f"up to {expected:.1f} GB/s")
                for index, direction, own, expected in sorted(found)[:8]
            ),
        )
