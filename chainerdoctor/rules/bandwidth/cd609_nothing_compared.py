"""CD609: nothing compared."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.bandwidth import BandwidthBefore, BandwidthFloor, BenchSetup
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.measured_bandwidth import rows_of
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD609", Severity.ERROR, needs=(BandwidthFloor, BandwidthBefore), since="0.1", any_of=True)
def nothing_compared(snapshot: Snapshot) -> Iterator[Finding]:
    """A floor or a baseline was given, and not one measured size could be compared with it.

    Why it hurts: a gate that compares nothing would pass whatever the bandwidth is.

    How to mend it: measure sizes from --floor-from on, on as many ranks and with the same backend and dtype as the
    baseline.
    """
    rows = rows_of(snapshot)
    ranks = snapshot.all(BenchSetup)[0].fact.ranks if snapshot.all(BenchSetup) else 0
    measured = (
        f"{len(rows)} rows on {ranks} ranks, the largest {max((row.size_bytes for row in rows), default=0):,} bytes"
    )
    floors = [seen.fact for seen in snapshot.all(BandwidthFloor)]
    if floors and not any(row.size_bytes >= floors[0].from_bytes for row in rows):
        yield Finding(
            where="--min-busbw",
            message="no measured size is as large as those that the floor judges",
            remedy="Measure larger sizes (--max, --sizes), or lower --floor-from.",
            evidence=(Evidence("measured", measured, f"{floors[0].from_bytes:,} bytes or more"),),
        )
    before = [seen.fact for seen in snapshot.all(BandwidthBefore)]
    mine = {(row.backend, row.dtype, row.size_bytes, row.in_place, row.ranks) for row in rows}
    if before and not any(
        (fact.backend, fact.dtype, fact.size_bytes, fact.in_place, fact.ranks) in mine
        and fact.size_bytes >= fact.from_bytes
        for fact in before
    ):
        kinds = sorted({f"{fact.backend}, {fact.dtype}, {fact.ranks} ranks" for fact in before})
        yield Finding(
            where="--baseline",
            message="no row of the baseline is of a size, backend, dtype and number of ranks that was measured",
            remedy="Measure as the baseline was measured, or keep a new one with --save.",
            evidence=(Evidence("measured", measured, "; ".join(kinds[:3])),),
        )
