"""CD601: sum wrong."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.bandwidth import AllreduceTiming
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD601", Severity.ERROR, needs=(AllreduceTiming,), since="0.1")
def sum_wrong(snapshot: Snapshot) -> Iterator[Finding]:
    """An all-reduce that was measured gave a wrong sum.

    Why it hurts: gradients are corrupted without an error; how fast that goes does not matter.

    How to mend it: see which ranks and sizes it concerns. One rank alone points at its memory or GPU; all ranks at the
    library or its settings (NCCL_PROTO, NCCL_ALGO, transports), which are to be unset one after the other.
    """
    wrong = [seen for seen in snapshot.all(AllreduceTiming) if seen.fact.wrong]
    sizes = sorted({seen.fact.size_bytes for seen in wrong})
    for rank in sorted({seen.rank for seen in wrong if seen.rank is not None}):
        mine = [seen for seen in wrong if seen.rank == rank]
        fact = mine[0].fact
        yield Finding(
            where=f"{mine[0].node}/rank {rank}",
            message=f"wrong sums by {fact.backend} ({fact.dtype})",
            remedy="Unset NCCL_PROTO, NCCL_ALGO and transport settings; if it is one rank alone, test its GPU and memory.",
            evidence=(
                Evidence(
                    f"{fact.size_bytes:,} bytes", f"{fact.wrong:,} wrong, the first at element {fact.wrong_at:,}", "0"
                ),
                Evidence(
                    "sizes", f"{len({seen.fact.size_bytes for seen in mine})} of {len(sizes)} that are wrong anywhere"
                ),
            ),
        )
