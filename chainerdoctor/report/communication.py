"""Tables and the chart of ``profile-comm``. Pure: from facts to what a report shows."""

from __future__ import annotations

from typing import Dict, List, Tuple

from chainerdoctor.facts.comm import CommunicationTime, Lateness, RankClock, Scaling
from chainerdoctor.facts.run import PhaseTimes
from chainerdoctor.findings import BarChart, Table
from chainerdoctor.predictions import predictions
from chainerdoctor.snapshot import Snapshot

#: In the order in which an iteration goes through them.
_PHASES = ("data", "forward", "backward", "update", "evaluation", "extension", "other")
#: Operations of a rank that are printed.
_MOST = 12


def communication_tables(snapshot: Snapshot) -> Tuple[Table, ...]:
    """What communication costs by operation, and the ledger of who made whom wait."""
    made = []
    scaling = snapshot.all(Scaling)
    if scaling:
        made.append(_scaling(scaling[0].fact))
    if snapshot.has(Lateness):
        made.append(_ledger(snapshot))
    if snapshot.has(CommunicationTime):
        made.append(_operations(snapshot))
    offsets = [seen for seen in snapshot.all(RankClock) if not seen.fact.shared]
    if offsets:
        rows = tuple(
            (str(seen.rank), f"{seen.fact.offset_s:+.6f}", _ms(seen.fact.uncertainty_s), _drift(seen.fact.drift_s))
            for seen in offsets
        )
        made.append(Table("Clocks against rank 0's", ("rank", "offset s", "±ms", "drift ms"), rows))
    return tuple(made)


def _scaling(scaling: Scaling) -> Table:
    exchange_s = scaling.waiting_s + scaling.transfer_s
    share = exchange_s / scaling.iteration_s if scaling.iteration_s else 0.0
    rows = [
        ("iteration", _ms(scaling.iteration_s), "100 %"),
        ("computing", _ms(scaling.compute_s), _percent(scaling.efficiency)),
        ("gradient exchange" + (" (beside it)" if scaling.asynchronous else ""), _ms(exchange_s), _percent(share)),
        ("  waiting for late ranks", _ms(scaling.waiting_s), _of(scaling.waiting_s, scaling)),
        ("  transfer", _ms(scaling.transfer_s), _of(scaling.transfer_s, scaling)),
        ("other communication", _ms(scaling.other_communication_s), _of(scaling.other_communication_s, scaling)),
    ]
    for name, (iteration_s, efficiency) in predictions(scaling).items():
        rows.append((f"at best with {name}", _ms(iteration_s), f"efficiency {_percent(efficiency)}"))
    bandwidth = "" if scaling.busbw_gbs is None else f", busbw {scaling.busbw_gbs:.3g} GB/s"
    title = (
        f"A mean iteration on {scaling.ranks} ranks, efficiency {_percent(scaling.efficiency)}; "
        f"{scaling.size_bytes:,} bytes of {scaling.dtype}{bandwidth}"
    )
    return Table(title, ("part", "ms", "share"), tuple(rows))


def _ledger(snapshot: Snapshot) -> Table:
    rows = []
    for seen in sorted(snapshot.all(Lateness), key=lambda each: -each.fact.cost_s):
        late = seen.fact
        phases = sorted(late.phases_s.items(), key=lambda item: -item[1])[:2]
        main = ", ".join(f"{name} {seconds:.3f}" for name, seconds in phases if seconds >= 0.05 * late.late_s)
        each = late.late_s / late.iterations if late.iterations else 0.0
        rows.append((str(seen.rank), f"{late.cost_s:.3f}", f"{late.late_s:.3f}", _ms(each), main))
    columns = ("rank", "cost s", "late s", "ms/iteration", "in s")
    return Table("Who made the others wait: seconds that it cost them, for how long it was late", columns, tuple(rows))


def _operations(snapshot: Snapshot) -> Table:
    groups: Dict[Tuple[str, str, str], List[CommunicationTime]] = {}
    for seen in snapshot.all(CommunicationTime):
        fact = seen.fact
        groups.setdefault((fact.operation, fact.place, fact.dtype), []).append(fact)
    ordered = sorted(groups.items(), key=lambda item: -sum(each.waiting_s + each.transfer_s for each in item[1]))
    rows = []
    for (operation, place, dtype), each in ordered[:_MOST]:
        where, _, via = place.partition("|")
        size = max(fact.size_bytes for fact in each)
        rows.append(
            (
                f"{operation}{f' of {via}' if via else ''}",
                where,
                str(max(fact.calls for fact in each)),
                f"{size:,} {dtype}".strip() if size >= 0 else "?",
                f"{sum(fact.waiting_s for fact in each):.3f}",
                f"{sum(fact.transfer_s for fact in each):.3f}",
            )
        )
    columns = ("operation", "at", "calls", "bytes", "waiting", "transfer")
    return Table("Communication, seconds summed over ranks", columns, tuple(rows))


def communication_charts(snapshot: Snapshot) -> Tuple[BarChart, ...]:
    """A mean iteration of each rank as a bar of its phases, of waiting and of sending."""
    times = {seen.rank or 0: seen.fact for seen in snapshot.all(PhaseTimes)}
    if not snapshot.has(Lateness) or not times:
        return ()
    waited: Dict[int, float] = {}
    sent: Dict[int, float] = {}
    for seen in snapshot.all(CommunicationTime):
        rank = seen.rank or 0
        waited[rank] = waited.get(rank, 0.0) + seen.fact.waiting_s
        sent[rank] = sent.get(rank, 0.0) + seen.fact.transfer_s
    values = []
    for place, fact in sorted(times.items()):
        seconds = [fact.phases_s.get(name, 0.0) for name in _PHASES] + [waited.get(place, 0.0), sent.get(place, 0.0)]
        values.append(tuple(each * 1e3 / fact.iterations if fact.iterations else 0.0 for each in seconds))
    rows = tuple(f"rank {place}" for place in sorted(times))
    return (BarChart("A mean iteration", rows, (*_PHASES, "waiting", "sending"), tuple(values), "ms"),)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


def _of(seconds: float, scaling: Scaling) -> str:
    return _percent(seconds / scaling.iteration_s if scaling.iteration_s else 0.0)


def _drift(seconds: object) -> str:
    return "?" if not isinstance(seconds, float) else f"{seconds * 1e3:+.3f}"
