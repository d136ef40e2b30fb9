"""CD604: rank slow."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.bandwidth import BenchSetup, PairTiming
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.measured_bandwidth import slow_ones
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD604", Severity.WARNING, needs=(PairTiming,), since="0.1")
def rank_slow(snapshot: Snapshot) -> Iterator[Finding]:
    """Messages between one rank and most others are slow, while those among the others are not.

    Why it hurts: every all-reduce passes that rank, so that its link sets the pace of all.

    How to mend it: look at the port, cable and NUMA binding of its node (ethtool, ibstat), and at what else runs there.
    """
    found = slow_ones(snapshot)
    nodes = {seen.rank: seen.node for seen in snapshot.all(BenchSetup) if seen.rank is not None}
    of_node: Dict[str, List[int]] = {}
    for rank, node in nodes.items():
        of_node.setdefault(node, []).append(rank)
    # Where all ranks of a node are slow it is the node's network, and one finding.
    slow_nodes = [
        node for node, its in of_node.items() if len(of_node) > 1 and len(its) > 1 and set(its) <= set(found.ranks)
    ]
    places = [(node, node, of_node[node]) for node in slow_nodes]
    places += [
        (f"{nodes.get(rank, '')}/rank {rank}".lstrip("/"), "", [rank])
        for rank in found.ranks
        if nodes.get(rank) not in slow_nodes
    ]
    for where, node, its in places:
        times = sorted(each for pair, each in found.times.items() if set(pair) & set(its))
        yield Finding(
            where=where,
            message=f"messages {'between this node and the others' if node else 'with most other ranks'} are slow",
            remedy="Look at the port, cable and NUMA binding of that rank's node, and at what else runs there.",
            evidence=(Evidence("median over its pairs", f"{times[len(times) // 2]:.1f} times the usual", "about 1"),),
        )
