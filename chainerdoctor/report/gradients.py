"""Charts and tables of what was seen of gradients."""

from __future__ import annotations

import math
from typing import Dict, List, Optional, Tuple

from chainerdoctor.facts.gradients import GradientSeries, NumberBroke, ParameterGradient
from chainerdoctor.findings import Chart, LineChart, Series, Table
from chainerdoctor.snapshot import Sighting, Snapshot

#: Ranks that a chart shows.
_MOST_RANKS = 8
_MOST_PARAMETERS = 12


def charts_of(snapshot: Snapshot) -> Tuple[Chart, ...]:
    """Loss, gradient norm and, where it changes, loss scale over the iterations."""
    seen = snapshot.all(GradientSeries)
    if not any(len(each.fact.steps) > 2 for each in seen):
        return ()
    marks = tuple(
        (float(each.fact.iteration), f"not finite on rank {each.rank}") for each in snapshot.all(NumberBroke)[:1]
    )
    made: List[Chart] = []
    losses = _series(seen, "loss")
    if losses:
        positive = all(value > 0 for each in losses for value in each.y if math.isfinite(value))
        made.append(LineChart("Loss", "iteration", "loss", losses, log_y=positive and _wide(losses), marks=marks))
    norms = _series(seen, "norm")
    made.append(LineChart("Norm of all gradients", "iteration", "norm", norms, log_y=True, marks=marks))
    scales = _series(seen, "scale")
    if any(value != each.y[0] for each in scales for value in each.y):
        made.append(LineChart("Loss scale", "iteration", "scale", scales, log_y=True))
    return tuple(made)


def _series(seen: Tuple[Sighting[GradientSeries], ...], what: str) -> Tuple[Series, ...]:
    several = len({each.fact.optimizer for each in seen}) > 1
    made = []
    for each in seen:
        values = getattr(each.fact, what)
        name = f"rank {each.rank}" + (f", optimizer {each.fact.optimizer}" if several else "")
        if any(math.isfinite(value) for value in values):
            made.append(Series(name, tuple(map(float, each.fact.steps)), values))
    return tuple(made[:_MOST_RANKS])


def _wide(series: Tuple[Series, ...]) -> bool:
    values = [value for each in series for value in each.y if math.isfinite(value) and value > 0]
    return bool(values) and max(values) > 30 * min(values)


def tables_of(snapshot: Snapshot) -> Tuple[Table, ...]:
    """Parameters of the first rank: norms, shares and update ratios, the largest gradients first."""
    ranks: Dict[Optional[int], List[ParameterGradient]] = {}
    for seen in snapshot.all(ParameterGradient):
        ranks.setdefault(seen.rank, []).append(seen.fact)
    if not ranks:
        return ()
    rank = min(ranks, key=lambda each: -1 if each is None else each)
    ordered = sorted(ranks[rank], key=lambda each: -each.norm_median)
    lines = tuple(
        (
            each.path if len(each.path) <= 28 else "…" + each.path[-27:],
            f"{each.norm_median:.3g}",
            f"{each.norm_last:.3g}",
            f"{each.zeros:.0%}",
            f"{each.subnormal:.0%}",
            "-" if each.update_ratio is None else f"{each.update_ratio:.1e}",
        )
        for each in ordered[:_MOST_PARAMETERS]
    )
    left = len(ordered) - len(lines)
    title = f"Gradients of rank {rank}" + (f", the {len(lines)} largest of {len(ordered)}" if left > 0 else "")
    columns = ("parameter", "norm median", "last", "zeros", "<6e-5", "update/param")
    return (Table(title, columns, lines),)
