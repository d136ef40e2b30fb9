"""CD218: pcie unlike peers."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.gpu import (
    Gpu,
    GpuPcie,
)
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list, unlike_peers
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD218",
    Severity.WARNING,
    needs=(
        GpuPcie,
        Gpu,
    ),
    since="0.1",
)
def pcie_unlike_peers(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU can have fewer PCIe lanes, or a lower generation, than most GPUs of the same model here.

    Why it hurts: it sits in a smaller slot, or its link came up narrow at boot and now calls that its maximum. The slowest
    link sets the pace of every ring through it.

    How to mend it: compare lspci -vv (LnkCap and LnkSta) of this slot with another, and move or reseat the card.
    """
    subjects = (("lanes", lambda fact: fact.width_max), ("generation", lambda fact: fact.generation_max))
    for what, value in subjects:
        odd = unlike_peers(snapshot, snapshot.all(GpuPcie), value)
        by_node: Dict[str, List[int]] = {}
        for (node, index), (own, usual) in odd.items():
            if own < usual:
                by_node.setdefault(node, []).append(index)
        for node, indices in by_node.items():
            yield Finding(
                where=f"{node}/{device_list(indices)}",
                message=f"the PCIe link allows less than on the other GPUs of this model: {what}",
                remedy="Compare lspci -vv (LnkCap, LnkSta) of this slot with another's, and move or reseat the card.",
                evidence=tuple(
                    Evidence(f"GPU {index}: {what}", str(odd[node, index][0]), str(odd[node, index][1]))
                    for index in sorted(indices)[:8]
                ),
            )
