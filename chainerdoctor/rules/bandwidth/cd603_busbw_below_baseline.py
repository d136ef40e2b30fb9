"""CD603: busbw below baseline."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.bandwidth import AllreduceTiming, BandwidthBefore
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.measured_bandwidth import rows_of
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD603", Severity.ERROR, needs=(BandwidthBefore, AllreduceTiming), since="0.1")
def busbw_below_baseline(snapshot: Snapshot) -> Iterator[Finding]:
    """The bus bandwidth at a size is lower than in the baseline, by more than the tolerance.

    Why it hurts: something has become worse since the cluster was healthy.

    How to mend it: run chainerdoctor diff on snapshots of check-cluster from then and now, and allreduce-bench
    --pairwise to see who is slow.
    """
    before = {
        (fact.backend, fact.dtype, fact.size_bytes, fact.in_place, fact.ranks): fact
        for fact in (seen.fact for seen in snapshot.all(BandwidthBefore))
    }
    for row in rows_of(snapshot):
        fact = before.get((row.backend, row.dtype, row.size_bytes, row.in_place, row.ranks))
        if fact is None or row.size_bytes < fact.from_bytes:
            continue
        least = fact.busbw_gbs * (1 - fact.tolerance)
        if row.busbw_gbs < least:
            yield Finding(
                where=f"{row.size_bytes:,} bytes{', in place' if row.in_place else ''}",
                message=f"the bus bandwidth of {row.backend} is lower than in the baseline",
                remedy="Compare check-cluster's snapshots of then and now by chainerdoctor diff.",
                evidence=(
                    Evidence("busbw", f"{row.busbw_gbs:.3f} GB/s", f"at least {least:.3f} GB/s"),
                    Evidence("baseline", f"{fact.busbw_gbs:.3f} GB/s, tolerance {fact.tolerance:.0%}"),
                ),
            )
