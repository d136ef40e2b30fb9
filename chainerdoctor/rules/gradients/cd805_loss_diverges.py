"""CD805: loss diverges."""

from __future__ import annotations

import statistics
from typing import Iterator

from chainerdoctor.facts.gradients import GradientSeries
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: Iterations below which a loss says nothing yet, and how large the windows at its end and at its best are.
_ENOUGH, _WINDOW = 40, 10
_TIMES = 3.0


@rule("CD805", Severity.WARNING, needs=(GradientSeries,), since="0.1")
def loss_diverges(snapshot: Snapshot) -> Iterator[Finding]:
    """The loss ended far above where it began and above its best.

    Why it hurts: the training goes away from its goal; more iterations do not bring it back.

    How to mend it: lower the learning rate (by ten, as a first try), warm it up over the first epochs, and look at the
    gradient norms before the loss turned. Two optimizers against each other (GAN) are not judged.
    """
    for node, rank in sorted({(seen.node, seen.rank or 0) for seen in snapshot.all(GradientSeries)}):
        own = [each for each in snapshot.all(GradientSeries) if (each.node, each.rank or 0) == (node, rank)]
        if len({each.fact.optimizer_class + str(each.fact.optimizer) for each in own}) > 1:
            continue
        loss = [each for each in own[0].fact.loss if each - each == 0.0]
        if len(loss) < _ENOUGH or min(loss) <= 0:
            continue
        windows = [statistics.median(loss[at : at + _WINDOW]) for at in range(len(loss) - _WINDOW + 1)]
        first, best, last = windows[0], min(windows), windows[-1]
        if last > _TIMES * best and last > _TIMES * first:
            step = own[0].fact.steps[windows.index(best)]
            yield Finding(
                where=own[0].where,
                message=f"the loss diverges after iteration {step}",
                remedy="Lower the learning rate by ten, or warm it up over the first epochs.",
                evidence=(
                    Evidence("at first", f"{first:.4g}"),
                    Evidence("at best", f"{best:.4g} near iteration {step}"),
                    Evidence("at the end", f"{last:.4g}", f"at most {_TIMES:g} times the first"),
                ),
            )
