"""CD602: busbw below floor."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.bandwidth import AllreduceTiming, BandwidthFloor
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.measured_bandwidth import rows_of
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD602", Severity.ERROR, needs=(BandwidthFloor, AllreduceTiming), since="0.1")
def busbw_below_floor(snapshot: Snapshot) -> Iterator[Finding]:
    """The bus bandwidth at a size is below what --min-busbw demands.

    Why it hurts: training on this machine or cluster will be as much slower as its gradients' exchange is. Each size
    is judged for itself: a mean over all sizes would hide that the large ones break down.

    How to mend it: run chainerdoctor allreduce-bench --pairwise to see who is slow, and check-cluster for the cause.
    """
    for floor in snapshot.all(BandwidthFloor):
        for row in rows_of(snapshot):
            if row.size_bytes >= floor.fact.from_bytes and row.busbw_gbs < floor.fact.busbw_gbs:
                yield Finding(
                    where=f"{row.size_bytes:,} bytes{', in place' if row.in_place else ''}",
                    message=f"the bus bandwidth of {row.backend} on {row.ranks} ranks is below the floor",
                    remedy="Run chainerdoctor allreduce-bench --pairwise to see who is slow, then check-cluster.",
                    evidence=(
                        Evidence("busbw", f"{row.busbw_gbs:.3f} GB/s", f"at least {floor.fact.busbw_gbs:g} GB/s"),
                    ),
                )
