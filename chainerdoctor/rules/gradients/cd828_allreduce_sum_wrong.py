"""CD828: allreduce sum wrong."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD828", Severity.ERROR, needs=(RankComparison,), since="0.1")
def allreduce_sum_wrong(snapshot: Snapshot) -> Iterator[Finding]:
    """The sum of a gradient after the all-reduce is not what the ranks' own sums make.

    Why it hurts: numbers are corrupted on their way or in a rank's memory; the training goes on with wrong gradients.

    How to mend it: run allreduce-bench --check with the same ranks, then without the one named; take its node out.

    Source: the mean is linear; the bound on rounding is that of Higham, Accuracy and Stability of Numerical Algorithms,
    section 4.2.
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "sum" and found.first is not None:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message=f"holds a mean gradient that is not the mean of the ranks' own at iteration {found.first}",
                remedy="Check that rank's node: chainerdoctor check-cluster --active and allreduce-bench --check on the same ranks.",
                evidence=tuple(evidence),
            )
