"""CD823: gradient mask differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD823", Severity.ERROR, needs=(RankComparison,), since="0.1")
def gradient_mask_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A parameter got a gradient on some ranks and none on others.

    Why it hurts: without zero_fill the exchange breaks or hangs; with it, the mean is pulled towards zero without a word.

    How to mend it: layers that are called only for some inputs have to be called on every rank, if with a weight of zero.
    """
    for seen in snapshot.all(RankComparison):
        found = seen.fact
        if found.what == "mask" and found.first is not None:
            evidence = [Evidence("compared", f"{found.compared} iterations")]
            if found.paths:
                evidence.append(Evidence("parameters", ", ".join(found.paths[:8])))
            if found.detail:
                evidence.append(Evidence("seen", found.detail))
            yield Finding(
                where=rank_list(found.odd),
                message=f"has a gradient where others have none (or none where they have one) at iteration {found.first}",
                remedy="Call every layer on every rank in each iteration, or use create_multi_node_optimizer(..., zero_fill=True) knowingly.",
                evidence=tuple(evidence),
            )
