"""CD238: host copy below link."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import GpuPcie
from chainerdoctor.facts.workload import FROM_PINNED, TO_PINNED, GpuCopy
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
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

    for seen in snapshot.all(GpuCopy):
        fact = seen.fact
        expected = expected_gbs(seen.node, fact) if fact.direction in (FROM_PINNED, TO_PINNED) else None
        if expected is None or fact.bandwidth_gbs >= SHARE * expected:
            continue
        told: Tuple[str, str, str] = (fact.direction, f"{fact.bandwidth_gbs:.1f} GB/s", f"up to {expected:.1f} GB/s")
        yield from per_node(
            [seen],
            lambda _, told=told: told,  # type: ignore[misc]
            "pinned copies are far below the PCIe link's rate",
            "Bind the rank to the processor of GPU {gpus} and check its link with lspci -vv while it is busy.",
        )
