"""From timed calls of all ranks to what communication costs, and which rank makes the others wait in which phase."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from typing import Dict, Iterator, List, Optional, Set, Tuple

from chainerdoctor.captures import RankCapture, Run, number
from chainerdoctor.captures.meetings import Clock, Meeting, TimedCall, clocks, meetings, timed_calls
from chainerdoctor.facts import Fact
from chainerdoctor.facts.comm import CommunicationTime, Lateness, RankClock, Scaling
from chainerdoctor.instrument.comm import CALLS_NAME
from chainerdoctor.snapshot import Sighting

#: Operations that exchange gradients; the second runs beside the computing.
EXCHANGE, EXCHANGE_ASYNC = "multi_node_mean_grad", "multi_node_mean_grad (async)"
#: The first iteration starts everything and is left out.
_FROM = 2


def facts(run: Run) -> Iterator[Sighting[Fact]]:
    """Nothing, where no calls were timed."""
    by_rank = {rank.rank: rank for rank in run.ranks}
    clock = clocks(run)
    calls = {
        rank: timed_calls(each, clock[rank]) for rank, each in by_rank.items() if CALLS_NAME in each.capture.packed
    }
    if not calls:
        return
    for rank in calls:
        if rank:
            yield by_rank[rank].where(_offset(clock[rank]))
    done = {rank: _completed(by_rank[rank]) for rank in calls}
    met = [each for each in meetings(calls) if _counts(each, done)]
    for rank, row in calls.items():
        for fact in _times(rank, row, met, done[rank]):
            yield by_rank[rank].where(fact)
    for rank, late in _lateness(met, calls, done).items():
        yield by_rank[rank].where(late)
    scaling = _scaling(by_rank, calls, met, done)
    if scaling is not None:
        yield Sighting("", None, "capture", 0.0, 0.0, scaling)


def _completed(rank: RankCapture) -> int:
    return max((int(number(each, "n")) for each in rank.capture.all("iteration")), default=0)


def _counts(meeting: Meeting, done: Dict[int, int]) -> bool:
    return all(_FROM <= call.iteration <= done[call.rank] for call in meeting.calls)


def _offset(clock: Clock) -> RankClock:
    if clock.shared or not clock.points:
        return RankClock(0.0, 0.0, None, clock.shared)
    first, last = clock.points[0], clock.points[-1]
    drift = (last[1] - first[1]) / 1e9 if len(clock.points) > 1 else None
    return RankClock(first[1] / 1e9, max(each[2] for each in clock.points) / 1e9, drift, False)


def _times(rank: int, row: List[TimedCall], met: List[Meeting], done: int) -> Iterator[CommunicationTime]:
    waiting: Dict[int, Tuple[float, float]] = {}
    for meeting in met:
        for call in meeting.calls:
            if call.rank == rank:
                waiting[id(call)] = (meeting.waiting_s(call), meeting.transfer_s(call))
    groups: Dict[Tuple[str, str, str], List[TimedCall]] = defaultdict(list)
    for call in row:
        if _FROM <= call.iteration <= done:
            groups[(call.operation, call.place, call.dtype)].append(call)
    for (operation, place, dtype), calls in sorted(groups.items()):
        found = [waiting.get(id(call)) for call in calls]
        alone = [call.ended_s - call.begun_s for call, times in zip(calls, found) if times is None]
        known = [times for times in found if times is not None]
        sizes = [call.size_bytes for call in calls]
        yield CommunicationTime(
            operation,
            place,
            len(calls),
            max(sizes),
            dtype,
            sum(times[0] for times in known),
            sum(times[1] for times in known) + sum(alone),
            len(alone),
        )


def _lateness(met: List[Meeting], calls: Dict[int, List[TimedCall]], done: Dict[int, int]) -> Dict[int, Lateness]:
    late: Dict[int, float] = dict.fromkeys(calls, 0.0)
    cost: Dict[int, float] = dict.fromkeys(calls, 0.0)
    phases: Dict[int, Dict[str, float]] = {rank: defaultdict(float) for rank in calls}
    by_iteration: Dict[int, Dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for meeting in met:
        for call, late_s, cost_s, parts in meeting.blame():
            late[call.rank] += late_s
            by_iteration[call.iteration][call.rank] += late_s
            cost[call.rank] += cost_s
            for name, seconds in parts.items():
                phases[call.rank][name] += seconds
    latest = Counter(max(each, key=lambda rank: each[rank]) for each in by_iteration.values())
    return {
        rank: Lateness(max(0, done[rank] - 1), latest[rank], late[rank], cost[rank], dict(sorted(phases[rank].items())))
        for rank in calls
    }


def _scaling(
    ranks: Dict[int, RankCapture], calls: Dict[int, List[TimedCall]], met: List[Meeting], done: Dict[int, int]
) -> Optional[Scaling]:
    exchanges = [each for each in met if each.calls[0].operation in (EXCHANGE, EXCHANGE_ASYNC)]
    walls = [_walls(ranks[rank]) for rank in calls]
    count = sum(number_of for _, number_of in walls)
    if not exchanges or not count:
        return None
    iteration_s = sum(wall for wall, _ in walls) / count
    asynchronous = exchanges[-1].calls[0].operation == EXCHANGE_ASYNC
    waiting = sum(each.waiting_s(call) for each in exchanges for call in each.calls) / count
    transfer = sum(each.transfer_s(call) for each in exchanges for call in each.calls) / count
    ours: Set[int] = {id(call) for each in exchanges for call in each.calls}
    other = sum(
        call.ended_s - call.begun_s
        for rank, row in calls.items()
        for call in row
        if id(call) not in ours and _FROM <= call.iteration <= done[rank]
    )
    members = len(exchanges[-1].calls)
    size = max(call.size_bytes for call in exchanges[-1].calls)
    times = [statistics.median(each.transfer_s(call) for call in each.calls) for each in exchanges]
    typical = statistics.median(times)
    blocking = other / count + (0.0 if asynchronous else waiting + transfer)
    return Scaling(
        ranks=members,
        iterations=min(done.values()) - 1,
        iteration_s=iteration_s,
        compute_s=max(0.0, iteration_s - blocking),
        waiting_s=waiting,
        transfer_s=transfer,
        other_communication_s=other / count,
        size_bytes=size,
        dtype=exchanges[-1].calls[0].dtype,
        busbw_gbs=2 * (members - 1) / members * size / typical / 1e9 if typical > 0 and size > 0 else None,
        asynchronous=asynchronous,
    )


def _walls(rank: RankCapture) -> Tuple[float, int]:
    """Seconds and number of a rank's iterations without the first."""
    wall, count = 0.0, 0
    for each in rank.capture.all("iteration"):
        spent = each.get("ns")
        folded = max(1, int(number(each, "k", 1)))
        if isinstance(spent, list) and int(number(each, "n")) >= _FROM:
            wall += sum(part for part in spent if isinstance(part, int)) / 1e9
            count += folded
    return wall, count
