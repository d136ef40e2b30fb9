"""CD236: GPU slower than peers."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.gpu import Gpu
from chainerdoctor.facts.workload import GpuProduct
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list, models
from chainerdoctor.rules.measured import by_group, slower_than_peers
from chainerdoctor.snapshot import Snapshot

#: Healthy cards of a model are within a few per cent of each other; the rest is for what else ran at the time.
SHARE = 0.75


@rule("CD236", Severity.WARNING, needs=(GpuProduct, Gpu), since="0.1")
def gpu_slower_than_peers(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU multiplies matrices more slowly than the others of its model.

    Why it hurts: every all-reduce waits for the slowest rank, so that one slow card sets the pace of all.

    How to mend it: look at its clocks, power limit and temperature (nvidia-smi -q -d CLOCK,POWER,PERFORMANCE), and for
    other processes on it.
    """
    named = models(snapshot)
    rows = {
        (seen.node, seen.fact.index): (named.get((seen.node, seen.fact.index), ""), seen.fact.gflops)
        for seen in snapshot.all(GpuProduct)
    }
    slow: Dict[Tuple[str, int], Tuple[float, float]] = {}
    for group in by_group(rows):
        slow.update(slower_than_peers(group, SHARE))
    by_node: Dict[str, List[int]] = {}
    for node, index in slow:
        by_node.setdefault(node, []).append(index)
    for node, indices in by_node.items():
        numbers = ",".join(map(str, sorted(indices)))
        yield Finding(
            where=f"{node}/{device_list(indices)}",
            message="the GPU computes more slowly than others of its model",
            remedy=f"Run nvidia-smi -i {numbers} -q -d CLOCK,POWER,PERFORMANCE and look for other processes on it.",
            evidence=tuple(
                Evidence(f"GPU {index}: product", *(f"{speed:,.0f} GFLOP/s" for speed in slow[node, index]))
                for index in sorted(indices)[:8]
            ),
        )
