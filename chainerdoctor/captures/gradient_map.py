"""Gradient norms of every parameter over the iterations, as a picture."""

from __future__ import annotations

import math
from typing import Optional

from chainerdoctor.captures import Run
from chainerdoctor.captures.gradients import norm_rows
from chainerdoctor.findings import HeatMap
from chainerdoctor.report.axes import thinned

#: Iterations that the picture shows.
_MOST_COLUMNS = 100


def norm_map(run: Run) -> Optional[HeatMap]:
    """log10 of the gradient norms of the first rank that has any: a row a parameter, a column an iteration."""
    for rank in run.ranks:
        tables = {int(each["o"]): each for each in rank.capture.all("parameters") if isinstance(each.get("o"), int)}
        rows = norm_rows(rank.capture)
        longest = max(rows, key=lambda at: len(rows[at]), default=None)
        names = tables.get(longest, {}).get("names") if longest is not None else None
        if longest is None or not isinstance(names, list):
            continue
        steps = [(step, norms) for step, norms in rows[longest] if len(norms) == len(names)]
        shown = [steps[at] for at in thinned(len(steps), _MOST_COLUMNS)]
        if len(shown) < 3:
            continue
        return HeatMap(
            f"Gradient norms of rank {rank.rank}",
            tuple(str(name) for name in names),
            tuple(str(step) for step, _ in shown),
            tuple(tuple(_log(norms[at]) for _, norms in shown) for at in range(len(names))),
            "log10 of the norm",
        )
    return None


def _log(norm: float) -> float:
    if norm == 0:
        return float("-inf")
    return math.log10(norm) if math.isfinite(norm) and norm > 0 else float("nan")
