"""CD327: node link slow."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.workload import NodeLink
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.measured import slower_than_peers
from chainerdoctor.snapshot import Snapshot

#: The best of several exchanges on a sound network is alike between all pairs; a factor of three is no noise.
SHARE = 1 / 3
#: Of three nodes one slow one has two of the three pairs, so that the median would be slow itself.
QUANTILE = 0.75


@rule("CD327", Severity.WARNING, needs=(NodeLink,), since="0.1")
def node_link_slow(snapshot: Snapshot) -> Iterator[Finding]:
    """Messages between two nodes are several times slower than between the other nodes.

    Why it hurts: an all-reduce passes every link, so that the slowest one sets the pace of all GPUs.

    How to mend it: if one node is slow towards all others, look at its port and cable (ethtool, ibstat: speed and
    errors); if only one pair is, look at the switches between them. chainerdoctor allreduce-bench --pairwise measures
    longer.
    """
    speeds = {(seen.fact.node, seen.fact.other): seen.fact.bandwidth_gbs for seen in snapshot.all(NodeLink)}
    slow = slower_than_peers(speeds, SHARE, QUANTILE)
    nodes: Dict[str, List[Tuple[str, str]]] = {}
    for pair in speeds:
        for node in pair:
            nodes.setdefault(node, []).append(pair)
    # A node that is slow towards all of at least two others is the culprit, and not each of its links.
    culprits = [node for node, pairs in nodes.items() if len(pairs) > 1 and all(pair in slow for pair in pairs)]
    for node in culprits:
        own, usual = slow[nodes[node][0]]
        yield Finding(
            where=node,
            message="the node's network is several times slower than that of the others",
            remedy=f"Look at the speed and the error counters of the port and cable of {node} (ethtool, ibstat).",
            evidence=(
                Evidence(f"with {_other(nodes[node][0], node)}", _speed(own), f"{_speed(usual)} as other pairs"),
            ),
        )
    for pair, (own, usual) in slow.items():
        if not set(pair) & set(culprits):
            yield Finding(
                where=f"{pair[0]}–{pair[1]}",
                message="the link between these nodes is several times slower than others",
                remedy="Look at the switches and cables between them (ethtool, ibstat: speed and error counters).",
                evidence=(Evidence("bandwidth", _speed(own), f"{_speed(usual)} as other pairs"),),
            )


def _other(pair: Tuple[str, str], node: str) -> str:
    return pair[1] if pair[0] == node else pair[0]


def _speed(gbs: float) -> str:
    return f"{gbs:.2f} GB/s" if gbs >= 0.1 else f"{gbs * 1000:.1f} MB/s"
