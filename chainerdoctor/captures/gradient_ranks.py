"""What ranks have to agree on, compared over their captures."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any, Dict, Iterator, List, Optional, Tuple

from chainerdoctor.captures import Run, number
from chainerdoctor.facts.gradients import RankComparison
from chainerdoctor.instrument.spool import Capture

#: Rounding of one float32 addition, relative (IEEE 754: half of 2⁻²³).
_FLOAT32_EPS = 2.0**-24
#: Ranks on unlike machines sum in another order; equal gradients' norms then differ by rounding only.
_NORM_TOLERANCE = 1e-5


def comparisons(run: Run) -> Iterator[RankComparison]:
    """Every comparison that the captures allow, of each group of ranks that train the same model."""
    captures = {each.rank: each.capture for each in run.ranks}
    for ranks, exchanged in _replicas(captures):
        yield from _compared({rank: captures[rank] for rank in ranks}, exchanged)


def _replicas(captures: Dict[int, Capture]) -> List[Tuple[List[int], bool]]:
    """Ranks that should hold the same model, and whether they exchanged gradients.

    Those that did are told apart by the communicator that they exchanged over: beside data parallelism there may be other
    parts of the model on other ranks. Of those that did not, ranks with the same parameters are taken for replicas that
    train alone, unless arrays went from rank to rank: then they are parts of one model.
    """
    groups: Dict[Tuple[Any, ...], List[int]] = {}
    exchanged = any(capture.last("exchange") is not None for capture in captures.values())
    if not exchanged and any(capture.last("model_parallel") is not None for capture in captures.values()):
        return []
    for rank, capture in sorted(captures.items()):
        record = capture.last("exchange")
        over = None if record is None else record.get("ranks")
        if not exchanged:
            key: Tuple[Any, ...] = ("alone", *_names(capture))
        else:
            key = ("exchange", *over) if isinstance(over, list) else ("exchange",)
        groups.setdefault(key, []).append(rank)
    if exchanged:
        # A rank whose capture ends before its first exchange belongs to the group that names it.
        for rank in groups.pop(("exchange",), []):
            home = next((key for key in groups if rank in key), ("exchange",))
            groups.setdefault(home, []).append(rank)
    return [(sorted(ranks), exchanged) for ranks in groups.values() if len(ranks) > 1]


def _compared(by_rank: Dict[int, Capture], exchanged: bool) -> Iterator[RankComparison]:
    steps = {rank: _by_step(capture.all("exchanged")) for rank, capture in by_rank.items()}
    prints = {
        rank: {int(number(each, "n")): each.get("parameters") for each in capture.all("fingerprints")}
        for rank, capture in by_rank.items()
    }
    yield _parameters(prints, exchanged)
    yield _initialised(by_rank, exchanged)
    yield _iterations(by_rank, exchanged)
    if exchanged:
        names = {rank: _names(capture) for rank, capture in by_rank.items()}
        yield _gradients(steps, names)
        yield _scales(steps)
        if all(any("local" in record for record in each.values()) for each in steps.values()):
            yield _masks(steps)
            yield _sums(steps, names)
            yield _local_norms(steps)


def _by_step(records: List[Dict[str, Any]]) -> Dict[int, Dict[str, Any]]:
    return {int(number(each, "n")): each for each in records}


def _names(capture: Capture) -> List[str]:
    tables = capture.all("parameters")
    names = tables[-1].get("names") if tables else None
    return [str(each) for each in names] if isinstance(names, list) else []


def _common(by_rank: Dict[int, Dict[int, Any]]) -> List[int]:
    """Iterations that every rank told of."""
    return sorted(set.intersection(*(set(each) for each in by_rank.values()))) if by_rank else []


def _odd(values: Dict[int, Any]) -> Tuple[int, ...]:
    """The ranks that are not of the majority; where there is none, those that differ from the lowest rank."""
    counts = Counter(repr(value) for value in values.values())
    (most, count), *_ = counts.most_common(1)
    reference = most if count * 2 > len(values) else repr(values[min(values)])
    return tuple(sorted(rank for rank, value in values.items() if repr(value) != reference))


def _made(
    what: str,
    compared: int,
    exchanged: bool,
    first: Optional[int] = None,
    odd: Tuple[int, ...] = (),
    paths: Tuple[str, ...] = (),
    detail: str = "",
) -> RankComparison:
    return RankComparison(what, compared, first, odd, paths, detail, exchanged)


def _parameters(prints: Dict[int, Dict[int, Any]], exchanged: bool) -> RankComparison:
    common = _common(prints)
    for step in common:
        told = {rank: each[step] for rank, each in prints.items()}
        if len({repr(value) for value in told.values()}) > 1:
            dicts = [value for value in told.values() if isinstance(value, dict)]
            paths = sorted(
                {path for one in dicts for path in one if any(other.get(path) != one[path] for other in dicts)}
            )
            return _made("parameters", len(common), exchanged, step, _odd(told), tuple(paths[:20]))
    return _made("parameters", len(common), exchanged)


def _gradients(steps: Dict[int, Dict[int, Dict[str, Any]]], names: Dict[int, List[str]]) -> RankComparison:
    common = _common(steps)
    for step in common:
        told = {rank: _hexes(each[step].get("norms")) for rank, each in steps.items()}
        lengths = {len(value) for value in told.values()}
        if len(lengths) > 1:
            return _made("gradients", len(common), True, step, _odd({r: len(v) for r, v in told.items()}))
        far = [
            place
            for place in range(lengths.pop())
            if _spread([value[place] for value in told.values()]) > _NORM_TOLERANCE
        ]
        if far:
            odd = _odd({rank: f"{value[far[0]]:.4g}" for rank, value in told.items()})
            own = names[min(names)]
            paths = tuple(own[place] for place in far[:20] if place < len(own))
            values = ", ".join(f"rank {rank}: {value[far[0]]:.6g}" for rank, value in sorted(told.items())[:8])
            return _made("gradients", len(common), True, step, odd, paths, f"norm of the first: {values}")
    return _made("gradients", len(common), True)


def _hexes(values: Any) -> List[float]:
    made = []
    for each in values if isinstance(values, list) else []:
        try:
            made.append(float.fromhex(str(each)))
        except ValueError:
            made.append(float("nan"))
    return made


def _spread(values: List[float]) -> float:
    finite = [each for each in values if each - each == 0.0]
    if len(finite) < len(values):
        return 0.0 if not finite else float("inf")
    most = max(abs(each) for each in finite)
    return (max(finite) - min(finite)) / most if most else 0.0


def _scales(steps: Dict[int, Dict[int, Dict[str, Any]]]) -> RankComparison:
    common = _common(steps)
    for step in common:
        told = {rank: each[step].get("scale") for rank, each in steps.items()}
        if len({repr(value) for value in told.values()}) > 1:
            detail = ", ".join(f"rank {rank}: {value}" for rank, value in sorted(told.items())[:8])
            return _made("scale", len(common), True, step, _odd(told), (), detail)
    return _made("scale", len(common), True)


def _initialised(by_rank: Dict[int, Capture], exchanged: bool) -> RankComparison:
    """Lazily initialised links: which parameters had a shape, in the rank's last word on them."""
    told: Dict[int, List[str]] = {}
    for rank, capture in by_rank.items():
        table = capture.last("parameters") or {}
        names, shapes = table.get("names"), table.get("shapes")
        if isinstance(names, list) and isinstance(shapes, list):
            told[rank] = sorted(str(name) for name, shape in zip(names, shapes) if shape is not None)
    if len({repr(value) for value in told.values()}) > 1:
        everything = set().union(*told.values())
        paths = sorted(each for each in everything if any(each not in value for value in told.values()))
        return _made("initialised", len(told), exchanged, 0, _odd(told), tuple(paths[:20]))
    return _made("initialised", len(told), exchanged)


def _iterations(by_rank: Dict[int, Capture], exchanged: bool) -> RankComparison:
    ends = {rank: capture.last("end") for rank, capture in by_rank.items()}
    done = {
        rank: int(number(end, "iterations"))
        for rank, end in ends.items()
        if end is not None and end.get("how") == "returned"
    }
    if len(done) > 1 and len(set(done.values())) > 1:
        detail = ", ".join(f"rank {rank}: {count}" for rank, count in sorted(done.items())[:16])
        return _made("iterations", len(done), exchanged, min(done.values()) + 1, _odd(done), (), detail)
    return _made("iterations", len(done), exchanged)


def _local(record: Dict[str, Any]) -> Dict[str, Any]:
    told = record.get("local")
    return told if isinstance(told, dict) else {}


def _masks(steps: Dict[int, Dict[int, Dict[str, Any]]]) -> RankComparison:
    common = _common(steps)
    for step in common:
        told = {rank: _local(each[step]).get("none") for rank, each in steps.items()}
        if len({repr(value) for value in told.values()}) > 1:
            lists = [value for value in told.values() if isinstance(value, list)]
            everything = {path for value in lists for path in value}
            paths = sorted(str(path) for path in everything if any(path not in value for value in lists))
            return _made("mask", len(common), True, step, _odd(told), tuple(paths[:20]))
    return _made("mask", len(common), True)


def _local_norms(steps: Dict[int, Dict[int, Dict[str, Any]]]) -> RankComparison:
    """The rank whose own gradients are much larger than those of the others, as a rule and not once."""
    common = _common(steps)
    ratios: Dict[int, List[float]] = {rank: [] for rank in steps}
    for step in common:
        told = {rank: number(_local(each[step]), "squares") ** 0.5 for rank, each in steps.items()}
        for rank, norm in told.items():
            others = statistics.median(value for other, value in told.items() if other != rank)
            if others > 0:
                ratios[rank].append(norm / others)
    medians = {rank: statistics.median(values) for rank, values in ratios.items() if values}
    odd = tuple(sorted(rank for rank, value in medians.items() if value > 10 or value < 0.1))
    if len(steps) == 2:  # each is the other's outlier: the mean is the larger one's
        odd = tuple(rank for rank in odd if medians[rank] > 10)
    if odd and len(common) >= 5 and len(odd) * 2 <= len(steps):
        detail = ", ".join(
            f"rank {rank}: {value:.3g} times the others' median" for rank, value in sorted(medians.items())
        )
        return _made("local norm", len(common), True, common[0], odd, (), detail)
    return _made("local norm", len(common), True)


def _sums(steps: Dict[int, Dict[int, Dict[str, Any]]], names: Dict[int, List[str]]) -> RankComparison:
    """The mean is linear: the sum over a mean gradient's elements is the mean of the ranks' own sums.

    Adding n numbers in another order changes a sum by at most about n·eps·Σ|x| (Higham, Accuracy and Stability of
    Numerical Algorithms, section 4.2); with n ranks that many additions are made for each element, and one division.
    """
    common, size = _common(steps), len(steps)
    for step in common:
        for place, path in enumerate(names[min(names)]):
            own = [_place(_local(each[step]).get("sums"), place) for each in steps.values()]
            sizes = [_place(_local(each[step]).get("sizes"), place) for each in steps.values()]
            if any(each is None for each in (*own, *sizes)):
                continue
            mean = sum(each for each in own if each is not None) / size
            bound = 4 * (size + 2) * _FLOAT32_EPS * sum(each for each in sizes if each is not None) / size
            after = {rank: _place(each[step].get("sums"), place) for rank, each in steps.items()}
            wrong = tuple(
                sorted(rank for rank, value in after.items() if value is not None and abs(value - mean) > bound)
            )
            if wrong:
                values = ", ".join(f"rank {rank}: {after[rank]:.9g}" for rank in wrong[:8])
                detail = f"mean of the ranks' own sums {mean:.9g} ± {bound:.2g}; after the all-reduce {values}"
                return _made("sum", len(common), True, step, wrong, (path,), detail)
    return _made("sum", len(common), True)


def _place(values: Any, place: int) -> Optional[float]:
    value = values[place] if isinstance(values, list) and place < len(values) else None
    return float(value) if isinstance(value, (int, float)) else None
