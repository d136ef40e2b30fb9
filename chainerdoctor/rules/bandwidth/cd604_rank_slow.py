"""CD604: rank slow."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.bandwidth import PairTiming
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
    nodes = {seen.rank: seen.node for seen in snapshot.all(PairTiming)}
    for rank in found.ranks:
        times = sorted(each for pair, each in found.times.items() if rank in pair)
        yield Finding(
            where=f"{nodes.get(rank, '')}/rank {rank}".lstrip("/"),
            message="messages with most other ranks are slow",
            remedy="Look at the port, cable and NUMA binding of that rank's node, and at what else runs there.",
            evidence=(Evidence("median over its pairs", f"{times[len(times) // 2]:.1f} times the usual", "about 1"),),
        )
