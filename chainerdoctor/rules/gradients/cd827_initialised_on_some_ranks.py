"""CD827: initialised on some ranks."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD827", Severity.ERROR, needs=(RankComparison,), since="0.1")
def initialised_on_some_ranks(snapshot: Snapshot) -> Iterator[Finding]:
    """A link whose size is found at its first call has been called on some ranks only.

    Why it hurts: ChainerMN broadcasts parameters when their number changes, and each rank decides that by itself: one rank
    waits in a broadcast and the others in an all-reduce, forever.

    How to mend it: L.Linear(in_size, out_size) with the size, or a first forward pass on all ranks.
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "initialised" and found.first is not None:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message="has initialised other parameters than the other ranks",
                remedy="Give input sizes in place of None, or run one forward pass through every layer on all ranks before training.",
                evidence=tuple(evidence),
            )
