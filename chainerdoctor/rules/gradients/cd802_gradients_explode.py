"""CD802: gradients explode."""

from __future__ import annotations

import math
import statistics
from typing import Iterator, List, Optional

from chainerdoctor.facts.gradients import GradientSeries
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: The last norms' median, against that of so many before them.
_LAST, _BEFORE = 5, 50
#: So many times larger, and outside of the norms' own scatter by so many robust standard deviations.
_TIMES, _DEVIATIONS = 30.0, 6.0


@rule("CD802", Severity.WARNING, needs=(GradientSeries,), since="0.1")
def gradients_explode(snapshot: Snapshot) -> Iterator[Finding]:
    """The norm of the gradients grows far beyond what it was.

    Why it hurts: updates become as large as the parameters, the loss follows, and NaN comes a few iterations later.

    How to mend it: a smaller learning rate or a warm-up, optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0)),
    or a look at the batches of those iterations. Recurrent networks need clipping as a rule.

    Source: the scatter is 1.4826 times the median absolute deviation of the norms' logarithms (Rousseeuw and Croux, 1993).
    """
    for seen in snapshot.all(GradientSeries):
        series = seen.fact
        points = [(step, norm) for step, norm in zip(series.steps, series.norm) if norm - norm == 0.0 and norm > 0]
        start = _explosion([norm for _, norm in points])
        if start is None:
            continue
        step, norm = points[start]
        before = statistics.median([norm for _, norm in points[max(0, start - _BEFORE) : start]])
        end = max(norm for _, norm in points[start:])
        yield Finding(
            where=seen.where,
            message=f"gradients explode from iteration {step} on",
            remedy="Lower the learning rate or clip: optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0)).",
            evidence=(
                Evidence("norm before", f"{before:.3g} (median)"),
                Evidence("norm then", f"{norm:.3g}, up to {end:.3g}", f"less than {_TIMES:g} times that before"),
            ),
        )


def _explosion(norms: List[float]) -> Optional[int]:
    """Where the growth begins that a window ends with; ``None`` without one."""
    for end in range(_LAST + 10, len(norms) + 1):
        last = statistics.median(norms[end - _LAST : end])
        logs = [math.log(each) for each in norms[max(0, end - _LAST - _BEFORE) : end - _LAST]]
        middle = statistics.median(logs)
        scatter = 1.4826 * statistics.median([abs(each - middle) for each in logs])
        limit = middle + max(math.log(_TIMES), _DEVIATIONS * scatter)
        if math.log(last) > limit:
            rest = range(end - _LAST, end)
            return next((at for at in rest if math.log(norms[at]) > middle + 3 * scatter), end - _LAST)
    return None
