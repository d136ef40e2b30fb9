"""CD806: loss does not move."""

from __future__ import annotations

import math
import statistics
from typing import Iterator

from chainerdoctor.facts.gradients import GradientSeries
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: Iterations below which a loss may well stand still.
_ENOUGH = 200


@rule("CD806", Severity.INFO, needs=(GradientSeries,), since="0.1")
def loss_does_not_move(snapshot: Snapshot) -> Iterator[Finding]:
    """The loss is where it was at first after hundreds of iterations, by less than its own noise.

    Why it hurts: nothing is learned; machine time is spent all the same.

    How to mend it: look at the update ratios (below 1e-6 the learning rate is too small), at parameters without gradient,
    and at whether inputs and labels belong together.
    """
    for seen in snapshot.all(GradientSeries):
        pairs = [(step, each) for step, each in zip(seen.fact.steps, seen.fact.loss) if each - each == 0.0]
        loss = [each for _, each in pairs]
        if len(loss) < 40 or pairs[-1][0] - pairs[0][0] < _ENOUGH:
            continue
        first, last = loss[: len(loss) // 10], loss[len(loss) // 2 :]
        noise = 1.4826 * statistics.median([abs(each - statistics.median(last)) for each in last])
        change = statistics.median(first) - statistics.median(last)
        # Within what the medians of so many noisy values differ by, and small beside the loss itself.
        unclear = abs(change) <= 2.5 * noise / math.sqrt(len(first))
        if unclear and abs(change) < 0.01 * abs(statistics.median(first)):
            yield Finding(
                where=seen.where,
                message=f"the loss has not moved in {pairs[-1][0]} iterations",
                remedy="Look at the update ratios and at parameters without gradient; try ten times the learning rate.",
                evidence=(
                    Evidence("median at first", f"{statistics.median(first):.5g}"),
                    Evidence("median of the last half", f"{statistics.median(last):.5g} (noise {noise:.2g})"),
                ),
            )
