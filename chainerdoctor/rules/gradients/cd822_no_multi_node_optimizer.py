"""CD822: no multi node optimizer."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD822", Severity.ERROR, needs=(RankComparison,), since="0.1")
def no_multi_node_optimizer(snapshot: Snapshot) -> Iterator[Finding]:
    """Several ranks train, but they exchange no gradients.

    Why it hurts: each rank trains alone on its part of the data; the others' work is thrown away.

    How to mend it: chainermn.create_multi_node_optimizer(optimizer, comm) before setup().
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "parameters" and found.first is not None and not found.exchanged:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message="parameters differ, and gradients were never exchanged",
                remedy="Wrap the optimizer: optimizer = chainermn.create_multi_node_optimizer(optimizer, comm).",
                evidence=tuple(evidence),
            )
