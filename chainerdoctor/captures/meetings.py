"""Calls of different ranks that belong together, on one clock: who waited, for whom, and what the late one was doing."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

from chainerdoctor.captures import RankCapture, Run, number
from chainerdoctor.instrument.comm import CALLS_NAME, NO_PEER, RECORD
from chainerdoctor.instrument.comm_gpu import STREAM_NAME, STREAM_RECORD
from chainerdoctor.instrument.training import PHASES


@dataclass(frozen=True)
class TimedCall:
    """One call of one rank; ``begun_s`` and ``ended_s`` are on rank 0's clock, ``phases_s`` since the call before."""

    rank: int
    operation: str
    communicator: str
    place: str
    dtype: str
    index: int
    iteration: int
    peer: int
    size_bytes: int
    begun_s: float
    ended_s: float
    phase: int
    phases_s: Tuple[float, ...]
    on_stream: bool


@dataclass(frozen=True)
class Meeting:
    """One collective, or a message and its receipt, with the call of every rank that takes part."""

    calls: Tuple[TimedCall, ...]

    @property
    def last_s(self) -> float:
        """When everybody was there."""
        return max(call.begun_s for call in self.calls)

    def waiting_s(self, call: TimedCall) -> float:
        """How long that call could not have done anything."""
        return max(0.0, min(self.last_s, call.ended_s) - call.begun_s)

    def transfer_s(self, call: TimedCall) -> float:
        """The rest of it."""
        return max(0.0, call.ended_s - call.begun_s - self.waiting_s(call))

    def blame(self) -> Iterator[Tuple[TimedCall, float, float, Dict[str, float]]]:
        """Late calls: for how long each was missed, what that cost the ranks that waited, and its phases' shares."""
        order = sorted(self.calls, key=lambda call: (call.begun_s, call.rank))
        late_s = [0.0] * len(order)
        cost_s = [0.0] * len(order)
        for at in range(len(order) - 1):
            gap_s = order[at + 1].begun_s - order[at].begun_s
            waiting = sum(1 for call in order[: at + 1] if call.ended_s >= order[at + 1].begun_s)
            if not waiting:
                continue
            missing = range(at + 1, len(order))
            for each in missing:
                late_s[each] += gap_s / len(missing)
                cost_s[each] += gap_s * waiting / len(missing)
        for at, call in enumerate(order):
            if late_s[at] > 0:
                yield call, late_s[at], cost_s[at], _phases(call, order[:at], late_s[at])


def _phases(late: TimedCall, others: Sequence[TimedCall], seconds: float) -> Dict[str, float]:
    """Split by what the late rank did longer than those that were there before it."""
    excess = {
        name: max(0.0, late.phases_s[at] - statistics.median(call.phases_s[at] for call in others))
        for at, name in enumerate(PHASES)
    }
    total = sum(excess.values())
    # Late without having done anything longer: it left the call before this one later.
    return {n: seconds * part / total for n, part in excess.items() if part} if total else {"communication": seconds}


@dataclass(frozen=True)
class Clock:
    """How a rank's clock is put on rank 0's: offsets (s) at two times of its own (ns); one time for no drift."""

    shared: bool
    points: Tuple[Tuple[float, float, float], ...]

    def seconds(self, at_ns: float) -> float:
        """A time of this rank in seconds of rank 0's clock."""
        if self.shared or not self.points:
            return at_ns / 1e9
        (t0, offset0, _), (t1, offset1, _) = self.points[0], self.points[-1]
        slope = (offset1 - offset0) / (t1 - t0) if t1 > t0 else 0.0
        return (at_ns - offset0 - slope * (at_ns - t0)) / 1e9


def clocks(run: Run) -> Dict[int, Clock]:
    """The clock of every rank that told of it."""
    made: Dict[int, Clock] = {}
    identities = {rank.rank: (rank.capture.last("clock") or {}).get("identity") for rank in run.ranks}
    for rank in run.ranks:
        points = tuple(
            (number(each, "at_ns"), number(each, "offset_ns"), number(each, "uncertainty_ns"))
            for each in rank.capture.all("clock-offset")
        )
        mine = identities[rank.rank]
        made[rank.rank] = Clock(rank.rank == 0 or (bool(mine) and mine == identities.get(0)), points)
    return made


def timed_calls(rank: RankCapture, clock: Clock) -> List[TimedCall]:
    """All calls that a rank recorded, in their order."""
    capture = rank.capture
    names = {int(number(each, "id")): str(each.get("text", "")) for each in capture.all("comm-name")}
    streams: Dict[int, Tuple[int, int]] = {}
    for chunk in capture.packed.get(STREAM_NAME, ()):
        whole = len(chunk) // STREAM_RECORD.size * STREAM_RECORD.size
        streams.update({at: (begun, ended) for at, begun, ended in STREAM_RECORD.iter_unpack(chunk[:whole])})
    made: List[TimedCall] = []
    for chunk in capture.packed.get(CALLS_NAME, ()):
        for row in RECORD.iter_unpack(chunk[: len(chunk) // RECORD.size * RECORD.size]):
            operation, communicator, place, dtype, phase, index, iteration, peer, size, begun, ended, *spent = row
            on_stream = streams.get(len(made))
            begun, ended = on_stream if on_stream is not None else (begun, ended)
            made.append(
                TimedCall(
                    rank.rank,
                    names.get(operation, "?"),
                    names.get(communicator, "?"),
                    names.get(place, ""),
                    names.get(dtype, ""),
                    index,
                    iteration,
                    peer,
                    size,
                    clock.seconds(begun),
                    clock.seconds(ended),
                    phase if phase < len(PHASES) else 0,
                    tuple(each / 1e6 for each in spent),
                    on_stream is not None,
                )
            )
    return made


def meetings(calls: Dict[int, List[TimedCall]]) -> List[Meeting]:
    """Calls matched across ranks, where every member's is there, in the order of their beginning."""
    rows: Dict[Tuple[object, ...], List[TimedCall]] = {}
    for rank, row in calls.items():
        for call in row:
            rows.setdefault(_key(rank, call), []).append(call)
    made = []
    for key, row in rows.items():
        expected = 2 if key[0] == "message" else len(members(str(key[1])))
        same = len({call.operation for call in row}) == 1 or key[0] == "message"
        if len(row) == expected > 1 and same and len({call.on_stream for call in row}) == 1:
            made.append(Meeting(tuple(row)))
    return sorted(made, key=lambda meeting: meeting.last_s)


def _key(rank: int, call: TimedCall) -> Tuple[object, ...]:
    if call.peer == NO_PEER:
        return "collective", call.communicator, call.index
    there = members(call.communicator)
    peer = there[call.peer] if call.peer < len(there) else -1
    sends = call.operation.startswith("send")
    return "message", call.communicator, (rank, peer) if sends else (peer, rank), call.index


def members(communicator: str) -> List[int]:
    """World ranks of a communicator by its name (``0-3/1``)."""
    made: List[int] = []
    for part in communicator.partition("/")[0].split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            made += range(int(first), int(last or first) + 1)
    return made
