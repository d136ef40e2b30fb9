"""CD680: wrong results."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclTestsTable
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place, shortened
from chainerdoctor.snapshot import Snapshot


@rule("CD680", Severity.ERROR, needs=(NcclTestsTable,), since="0.1")
def wrong_results(snapshot: Snapshot) -> Iterator[Finding]:
    """nccl-tests found wrong results.

    Why it hurts: training on these GPUs gets wrong gradients.

    How to mend it: test the GPUs one pair at a time to find the faulty one; look at ECC counters and Xids; turn
    ACS and IOMMU off.

    Source: NVIDIA/nccl-tests doc/PERFORMANCE.md
    """
    for sighting in snapshot.all(NcclTestsTable):
        table = sighting.fact
        wrong = (table.wrong or 0) + (table.out_of_bounds or 0)
        if wrong:
            yield Finding(
                shortened(table.devices) or table.path,
                "nccl-tests found wrong results",
                "Find the faulty GPU by testing pairs (CUDA_VISIBLE_DEVICES=0,1 …); then look at its ECC counters.",
                (Evidence(place(table.path, table.line), f"{wrong} wrong elements", "0"),),
                Location(table.path, table.line),
            )
