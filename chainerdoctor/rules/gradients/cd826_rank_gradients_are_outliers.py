"""CD826: rank gradients are outliers."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD826", Severity.WARNING, needs=(RankComparison,), since="0.1")
def rank_gradients_are_outliers(snapshot: Snapshot) -> Iterator[Finding]:
    """One rank's own gradients are ten times larger or smaller than those of the others, iteration after iteration.

    Why it hurts: the mean is that rank's gradient, whatever the others compute.

    How to mend it: compare its shard of the data with another's: scatter_dataset with shuffle=True mixes them. Where the
    data is alike, chainerdoctor check-cluster computes on each GPU and checks the results.
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "local norm" and found.first is not None:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message="own gradients are of another size than those of the other ranks, before the all-reduce",
                remedy="Look at that rank's part of the data (labels, normalisation) and, if its data is like the others', at its GPU.",
                evidence=tuple(evidence),
            )
