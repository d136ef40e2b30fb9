"""CD807: no warm up."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gradients import GradientSeries, OptimizerSettings
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: Goyal et al. (2017): 0.1 for a batch of 256, in proportion for larger ones, after a warm-up of five epochs.
_RATE, _BATCH = 0.1, 256
#: From this global batch on they need the warm-up, and from this share of the rule's rate on it is a large one.
_LARGE_BATCH, _SHARE = 1024, 0.5


@rule("CD807", Severity.INFO, needs=(GradientSeries, OptimizerSettings), since="0.1")
def no_warm_up(snapshot: Snapshot) -> Iterator[Finding]:
    """A large global batch is trained with the learning rate that belongs to it from the first iteration on.

    Why it hurts: with the linear scaling rule the first updates are larger than the network bears, and the accuracy
    reached in the end is lower, or the loss diverges.

    How to mend it: begin with the rate for one rank and raise it to the full one over the first epochs
    (chainer.training.extensions.WarmupShift).

    Source: Goyal et al., Accurate, Large Minibatch SGD (2017), sections 2.1 and 2.2.
    """
    plain = {
        (seen.node, seen.rank, seen.fact.optimizer)
        for seen in snapshot.all(OptimizerSettings)
        if seen.fact.optimizer_class in ("SGD", "MomentumSGD", "NesterovAG", "CorrectedMomentumSGD")
    }
    for seen in snapshot.all(GradientSeries):
        series = seen.fact
        if seen.rank or (seen.node, seen.rank, series.optimizer) not in plain or series.batch is None:
            continue
        batch = series.batch * series.ranks
        rates = [each for each in series.rate if each - each == 0.0]
        if batch < _LARGE_BATCH or len(rates) < 2 or series.steps[0] > 2:
            continue
        wanted = _RATE * batch / _BATCH
        if rates[0] >= _SHARE * wanted and rates[0] >= max(rates):
            yield Finding(
                where=seen.where,
                message=f"a global batch of {batch} starts with its full learning rate of {rates[0]:g}",
                remedy="Warm the learning rate up over the first epochs: trainer.extend(extensions.WarmupShift(...)).",
                evidence=(
                    Evidence("batch", f"{series.batch} on each of {series.ranks} ranks"),
                    Evidence("linear scaling rule", f"{wanted:.3g} after a warm-up"),
                ),
            )
