"""CD820: parameters differ."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD820", Severity.ERROR, needs=(RankComparison,), since="0.1")
def parameters_differ(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks that exchange gradients have different parameters.

    Why it hurts: each rank trains a model of its own from then on; the mean of their gradients belongs to none of them,
    and the snapshot is rank 0's alone.

    How to mend it: everything that changes a parameter has to do the same on every rank: loading a snapshot, random
    initialisation after the first broadcast, hooks that draw random numbers (GradientNoise), a different hyperparameter.
    comm.bcast_data(model) makes them equal again.
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "parameters" and found.first is not None and found.exchanged:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message=f"parameters differ from those of the other ranks after iteration {found.first}",
                remedy="Make all ranks start from rank 0's parameters and update only through the multi-node optimizer; reset optimizers alike.",
                evidence=tuple(evidence),
            )
