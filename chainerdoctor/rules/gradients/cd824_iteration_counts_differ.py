"""CD824: iteration counts differ."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD824", Severity.WARNING, needs=(RankComparison,), since="0.1")
def iteration_counts_differ(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks completed different numbers of iterations.

    Why it hurts: with a collective in every iteration the longer ones hang at the end; without one they trained on
    different amounts of data.

    How to mend it: scatter the data with force_equal_length=True, and stop by iterations and not by time.
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "iterations" and found.first is not None:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message=f"ended with another number of iterations; the first missing is {found.first}",
                remedy="Give every rank as many batches: chainermn.scatter_dataset(..., force_equal_length=True) does.",
                evidence=tuple(evidence),
            )
