"""CD825: loss scale differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD825", Severity.ERROR, needs=(RankComparison,), since="0.1")
def loss_scale_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks scale their losses differently.

    Why it hurts: the all-reduce adds scaled gradients; ranks with the larger scale count that many times more.

    How to mend it: dynamic loss scaling decides on each rank for itself; all ranks must skip and scale alike.
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "scale" and found.first is not None:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message=f"has another loss scale than the other ranks at iteration {found.first}",
                remedy="Use the same scale on all ranks: a static one, or let rank 0 decide and broadcast it.",
                evidence=tuple(evidence),
            )
