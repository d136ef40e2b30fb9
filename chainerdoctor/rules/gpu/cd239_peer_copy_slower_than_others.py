"""CD239: peer copy slower than others."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.fabric import GpuPair
from chainerdoctor.facts.workload import GpuPeerCopy
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list
from chainerdoctor.rules.measured import by_group, slower_than_peers
from chainerdoctor.snapshot import Snapshot

SHARE = 0.6


@rule("CD239", Severity.WARNING, needs=(GpuPeerCopy,), since="0.1")
def peer_copy_slower_than_others(snapshot: Snapshot) -> Iterator[Finding]:
    """Copies between two GPUs are slower than between other pairs that are connected in the same way.

    Why it hurts: NCCL's rings run through that pair, and a ring moves at the pace of its slowest edge.

    How to mend it: look at the pair's links (nvidia-smi nvlink -s, nvidia-smi topo -m) and at error counters
    (nvidia-smi nvlink -e); reseat the bridge or the card.
    """
    wiring = {}
    for pair in snapshot.all(GpuPair):
        wiring[pair.node, pair.fact.gpu, pair.fact.peer] = pair.fact.path
        wiring[pair.node, pair.fact.peer, pair.fact.gpu] = pair.fact.path
    rows = {
        (seen.node, seen.fact.index, seen.fact.other): (
            (seen.fact.direct, wiring.get((seen.node, seen.fact.index, seen.fact.other))),
            seen.fact.bandwidth_gbs,
        )
        for seen in snapshot.all(GpuPeerCopy)
    }
    slow: Dict[str, List[Tuple[int, int, float, float]]] = {}
    for group in by_group(rows):
        for (node, one, two), (own, usual) in slower_than_peers(group, SHARE).items():
            slow.setdefault(node, []).append((one, two, own, usual))
    for node, found in slow.items():
        yield Finding(
            where=f"{node}/{device_list(number for one, two, _, _ in found for number in (one, two))}",
            message="copies between these GPUs are slower than between others that are connected alike",
            remedy="Look at nvidia-smi nvlink -s, nvidia-smi nvlink -e and nvidia-smi topo -m; reseat bridge or card.",
            evidence=tuple(
                Evidence(f"GPU {one} to {two}", f"{own:.1f} GB/s", f"{usual:.1f} GB/s as other pairs")
                for one, two, own, usual in sorted(found)[:8]
            ),
        )
