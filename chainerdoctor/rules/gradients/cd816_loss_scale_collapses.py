"""CD816: loss scale collapses."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gradients import GradientSeries, OptimizerSettings
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: A dynamic scale doubles until it overflows, about 17 times; after that few updates should be left out.
_AT_FIRST, _SHARE = 30, 0.2


@rule("CD816", Severity.WARNING, needs=(GradientSeries, OptimizerSettings), since="0.1")
def loss_scale_collapses(snapshot: Snapshot) -> Iterator[Finding]:
    """Dynamic loss scaling leaves out update after update, or its scale has fallen to 1.

    Why it hurts: updates that are left out train nothing. A scale of 1 means that gradients overflow even unscaled, or
    that something is NaN whatever the scale.

    How to mend it: find the operation that overflows with check-gradients and a static scale of 1
    (optimizer.set_loss_scale(1)), and compute it in float32.
    """
    dynamic = {
        (seen.node, seen.rank, seen.fact.optimizer)
        for seen in snapshot.all(OptimizerSettings)
        if seen.fact.scaling == "dynamic"
    }
    for seen in snapshot.all(GradientSeries):
        series = seen.fact
        if (seen.node, seen.rank, series.optimizer) not in dynamic or not series.steps:
            continue
        done = series.steps[-1]
        fallen = series.scale[-1] <= 1 and max(series.scale) > 1
        if done > _AT_FIRST and (series.skips > _SHARE * done or fallen):
            yield Finding(
                where=seen.where,
                message=f"dynamic loss scaling left out {series.skips} of {done} updates",
                remedy="Find the operation that overflows with a static scale of 1 under check-gradients, and use float32 there.",
                evidence=(
                    Evidence("loss scale", f"{series.scale[-1]:g} now, {max(series.scale):g} at most", "above 1"),
                ),
            )
