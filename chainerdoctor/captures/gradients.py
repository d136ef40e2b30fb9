"""From what each rank recorded of its gradients to facts: series, parameters, culprits, and comparisons of ranks."""

from __future__ import annotations

import statistics
from array import array
from typing import Any, Dict, Iterator, List, Optional, Tuple

from chainerdoctor.captures import RankCapture, Run, number
from chainerdoctor.captures.gradient_ranks import comparisons
from chainerdoctor.facts import Fact
from chainerdoctor.facts.gradients import (
    ArrayRange,
    GradientSeries,
    GradientsKept,
    NumberBroke,
    OptimizerSettings,
    ParameterGradient,
)
from chainerdoctor.instrument.spool import Capture
from chainerdoctor.snapshot import Sighting

#: Points of a series that a fact holds.
_MOST_POINTS = 500

#: Rows of norms: for a table of parameters, the (iteration, norms) that were recorded.
Rows = Dict[int, List[Tuple[int, List[float]]]]


def facts(run: Run) -> Iterator[Sighting[Fact]]:
    """Everything that the instrument ``gradients`` recorded; nothing for a run without it."""
    told = False
    for rank in run.ranks:
        for capture in (rank.capture, *rank.children):
            if not capture.all("parameters"):
                continue
            told = True
            for fact in _of_rank(capture, run.size):
                yield rank.where(fact)
    if told and run.size > 1:
        for fact in comparisons(run):
            yield Sighting("", None, "capture", 0.0, 0.0, fact)


def _of_rank(capture: Capture, ranks: int) -> Iterator[Fact]:
    rows = norm_rows(capture)
    tables = {int(number(each, "o")): each for each in capture.all("parameters")}
    settings: Dict[int, Dict[str, Any]] = {}
    for record in capture.all("optimizer"):
        settings[int(number(record, "o"))] = record
    for at, table in sorted(tables.items()):
        steps = [each for each in capture.all("step") if number(each, "o") == at]
        if steps:
            yield _series(at, table, steps, ranks)
        yield from _parameters(at, table, rows.get(at, []), capture)
        if at in settings:
            yield _settings(at, settings[at])
    kept = capture.last("kept_gradients")
    yield GradientsKept(str(kept.get("path", "")) if kept else "", int(number(kept, "times")), int(number(kept, "of")))
    for record in capture.all("broken")[:1]:
        yield _broke(record)


def norm_rows(capture: Capture) -> Rows:
    """The norms that were recorded, by table of parameters."""
    made: Rows = {}
    for data in capture.packed.get("norms", ()):
        values = array("d")
        values.frombytes(data[: len(data) - len(data) % 8])
        at = 0
        while at + 3 <= len(values):
            table, step, count = (int(each) if each == each else 0 for each in values[at : at + 3])
            if not 0 <= count <= len(values) - at - 3:
                break
            made.setdefault(table, []).append((step, list(values[at + 3 : at + 3 + count])))
            at += 3 + count
    return made


def _series(at: int, table: Dict[str, Any], steps: List[Dict[str, Any]], ranks: int) -> GradientSeries:
    every = max(1, -(-len(steps) // _MOST_POINTS))
    # The last point is what people look at first.
    shown = steps[::-1][::every][::-1]
    optimizer = table.get("optimizer")
    batches = [int(number(each, "batch")) for each in steps if isinstance(each.get("batch"), int)]
    return GradientSeries(
        optimizer=at,
        optimizer_class=str(optimizer.get("class", "")) if isinstance(optimizer, dict) else "",
        steps=tuple(int(number(each, "n")) for each in shown),
        loss=tuple(_float(each.get("loss")) for each in shown),
        norm=tuple(_float(each.get("norm")) for each in shown),
        rate=tuple(_float(each.get("lr")) for each in shown),
        scale=tuple(number(each, "scale", 1.0) for each in shown),
        batch=int(statistics.median(batches)) if batches else None,
        skips=int(number(steps[-1], "skips")),
        ranks=ranks,
    )


def _parameters(
    at: int, table: Dict[str, Any], rows: List[Tuple[int, List[float]]], capture: Capture
) -> Iterator[Fact]:
    names, shapes, dtypes = (_list(table.get(key)) for key in ("names", "shapes", "dtypes"))
    shares = [each for each in capture.all("shares") if number(each, "o") == at]
    ratios = [_list(each.get("r")) for each in capture.all("ratios") if number(each, "o") == at]
    missing = next((each for each in reversed(capture.all("missing")) if number(each, "o") == at), None)
    without = _list(missing.get("none")) if missing else []
    whole = [norms for _, norms in rows if len(norms) == len(names)]
    for place, name in enumerate(names):
        norms = [norms[place] for norms in whole]
        shape = shapes[place] if place < len(shapes) else None
        changes = [_float(each[place]) for each in ratios if place < len(each)]
        changes = [each for each in changes if each == each]
        yield ParameterGradient(
            optimizer=at,
            path=str(name),
            dtype=str(dtypes[place]) if place < len(dtypes) else "",
            shape=tuple(int(_float(each)) for each in _list(shape)),
            norm_first=norms[0] if norms else 0.0,
            norm_median=_median(norms),
            norm_last=norms[-1] if norms else 0.0,
            zeros=_median([_at(each.get("zeros"), place) for each in shares]),
            subnormal=_median([_at(each.get("tiny"), place) for each in shares]),
            peak=max((_at(each.get("peak"), place) for each in shares), default=0.0),
            update_ratio=_median(changes) if changes else None,
            without=int(without[place]) if place < len(without) and isinstance(without[place], int) else 0,
            seen=int(number(missing, "seen")),
        )


def _settings(at: int, record: Dict[str, Any]) -> OptimizerSettings:
    told = record.get("settings")
    values = told.get("values") if isinstance(told, dict) else None
    stray, scale, eps = record.get("stray_loss_scale"), record.get("static_scale"), record.get("eps_lost")
    return OptimizerSettings(
        optimizer=at,
        optimizer_class=str(record.get("class", "")),
        half=record.get("half") is True,
        scaling=str(record.get("scaling", "none")),
        static_scale=float(scale) if isinstance(scale, (int, float)) else None,
        stray_loss_scale=None if stray is None else str(stray),
        scaled_hooks=tuple(str(each) for each in _list(record.get("scaled_hooks"))),
        fp32_wish=record.get("fp32_wish") is True,
        fp32_rules=record.get("fp32_rules") is True,
        eps_lost=float(eps) if isinstance(eps, (int, float)) else None,
        values={str(k): float(v) for k, v in values.items() if isinstance(v, (int, float))}
        if isinstance(values, dict)
        else {},
    )


def _broke(record: Dict[str, Any]) -> NumberBroke:
    culprit, replayed = record.get("culprit"), record.get("replayed")
    found: Dict[str, Any] = culprit if isinstance(culprit, dict) else {}
    again: Dict[str, Any] = replayed if isinstance(replayed, dict) else {}
    survives, scale = found.get("float32_survives"), found.get("scale_survives")
    texts = {key: str(found.get(key, "")) for key in ("stage", "label", "path", "place", "inner")}
    trend = [each for each in _list(record.get("trend")) if isinstance(each, list) and len(each) == 2]
    own_scale = record.get("scale")
    return NumberBroke(
        iteration=int(number(record, "n")),
        in_loss=record.get("loss") is True,
        parameters=tuple(str(each) for each in _list(record.get("parameters"))),
        count=int(number(record, "count")),
        scale=float(own_scale) if isinstance(own_scale, (int, float)) else None,
        exchanged=record.get("multi_node") is True,
        trend=tuple((int(_float(step)), _float(norm)) for step, norm in trend),
        arrays=_ranges(found.get("arrays")),
        results=_ranges(found.get("results")),
        float32_survives=survives if isinstance(survives, bool) else None,
        scale_survives=float(scale) if isinstance(scale, (int, float)) and not isinstance(scale, bool) else None,
        same=again.get("same") is True,
        problem=str(again.get("problem", "")),
        repro=str(record.get("repro", "")),
        **texts,
    )


def _ranges(told: Any) -> Tuple[ArrayRange, ...]:
    made = []
    for each in _list(told):
        if not (isinstance(each, list) and len(each) == 2 and isinstance(each[1], dict)):
            continue
        name, values = each
        least, greatest = values.get("min"), values.get("max")
        made.append(
            ArrayRange(
                name=str(name),
                dtype=str(values.get("dtype", "")),
                shape=tuple(int(_float(n)) for n in _list(values.get("shape"))),
                least=float(least) if isinstance(least, (int, float)) else None,
                greatest=float(greatest) if isinstance(greatest, (int, float)) else None,
                nan=int(number(values, "nan")),
                infinite=int(number(values, "inf")),
                zeros=int(number(values, "zeros")),
            )
        )
    return tuple(made)


def rank_of(run: Run, rank: int) -> Optional[RankCapture]:
    """The capture of a rank, if it left one."""
    return next((each for each in run.ranks if each.rank == rank), None)


def _float(value: Any) -> float:
    try:
        return float("nan") if value is None else float(value)
    except (TypeError, ValueError):
        return float("nan")


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []


def _at(values: Any, place: int) -> float:
    return _float(values[place]) if isinstance(values, list) and place < len(values) else 0.0


def _median(values: List[float]) -> float:
    finite = [each for each in values if each - each == 0.0]
    return statistics.median(finite) if finite else 0.0
