"""CD821: gradients differ."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD821", Severity.ERROR, needs=(RankComparison,), since="0.1")
def gradients_differ(snapshot: Snapshot) -> Iterator[Finding]:
    """After the all-reduce, ranks hold different gradients.

    Why it hurts: the mean is the same for all by definition; where it is not, a rank's memory or network corrupts numbers,
    or one rank changes gradients after the exchange. The parameters drift apart from then on.

    How to mend it: chainerdoctor allreduce-bench --check on the same ranks finds a corrupting one; else look for code that
    depends on the rank between multi_node_mean_grad and update.
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "gradients" and found.first is not None:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message=f"gradients after the all-reduce differ from those of the other ranks at iteration {found.first}",
                remedy="Look for a hook or code that changes gradients on one rank only, and check the all-reduce: allreduce-bench --check.",
                evidence=tuple(evidence),
            )
