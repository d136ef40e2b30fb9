"""CD237: GPU copy slower than peers."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.gpu import Gpu
from chainerdoctor.facts.workload import GpuCopy
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list, models
from chainerdoctor.rules.measured import by_group, slower_than_peers
from chainerdoctor.snapshot import Snapshot

#: GPUs behind the other processor's socket reach three quarters of the near ones; a bad link reaches half or less.
SHARE = 0.6


@rule("CD237", Severity.WARNING, needs=(GpuCopy, Gpu), since="0.1")
def gpu_copy_slower_than_peers(snapshot: Snapshot) -> Iterator[Finding]:
    """Copies to, from or within a GPU are slower than those of the other GPUs of its model.

    Why it hurts: batches arrive late on that rank, and the others wait for it in the next all-reduce.

    How to mend it: compare LnkSta with LnkCap in lspci -vv for that GPU, reseat the card or its riser, and look for
    other processes on it.
    """
    named = models(snapshot)
    rows = {
        (seen.node, seen.fact.index, seen.fact.direction): (
            (named.get((seen.node, seen.fact.index), ""), seen.fact.direction),
            seen.fact.bandwidth_gbs,
        )
        for seen in snapshot.all(GpuCopy)
    }
    slow: Dict[str, List[Tuple[int, str, float, float]]] = {}
    for group in by_group(rows):
        for (node, index, direction), (own, usual) in slower_than_peers(group, SHARE).items():
            slow.setdefault(node, []).append((index, direction, own, usual))
    for node, found in slow.items():
        yield Finding(
            where=f"{node}/{device_list(index for index, _, _, _ in found)}",
            message="copies are slower than on other GPUs of this model",
            remedy="Compare LnkSta with LnkCap in lspci -vv, reseat the card, and look for other processes on it.",
            evidence=tuple(
                Evidence(f"GPU {index}: {direction}", f"{own:.1f} GB/s", f"{usual:.1f} GB/s as its peers")
                for index, direction, own, usual in sorted(found)[:8]
            ),
        )
