"""A run as a trace for Perfetto's UI (ui.perfetto.dev) and other readers of Chrome's trace format.

A process per rank, with a track of phases and one of communication. A call's time of waiting is a slice within it, and
an arrow leads from the call of the rank that came last to each that waited for it. Times are on rank 0's clock.

Source: the Trace Event Format, https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU.
"""

from __future__ import annotations

import json
from typing import Any, Dict, Iterator, List

from chainerdoctor.captures import RankCapture, Run
from chainerdoctor.captures.meetings import Clock, Meeting, TimedCall, clocks, meetings, timed_calls
from chainerdoctor.instrument.comm import CALLS_NAME, PHASE_RECORD, PHASES_NAME
from chainerdoctor.instrument.training import PHASES

#: Tracks of a rank.
_PHASES, _CALLS = 1, 2
#: Arrows are drawn for waiting of at least so many microseconds: shorter ones cannot be seen, and hide the others.
_ARROW_US = 100.0


def trace_of(run: Run) -> str:
    """The trace as JSON text; without events where nothing was timed."""
    clock = clocks(run)
    ranks = {each.rank: each for each in run.ranks if CALLS_NAME in each.capture.packed}
    calls = {rank: timed_calls(each, clock[rank]) for rank, each in ranks.items()}
    starts = [row[0].begun_s for row in calls.values() if row]
    zero_s = min(starts) if starts else 0.0
    events: List[Dict[str, Any]] = []
    for rank, capture in ranks.items():
        events += _names(rank, capture.node)
        events += _phases(rank, capture, clock[rank], zero_s)
    met = meetings(calls)
    waiting = {id(call): meeting for meeting in met for call in meeting.calls}
    for row in calls.values():
        for call in row:
            events += _call(call, waiting.get(id(call)), zero_s)
    for number, meeting in enumerate(met):
        events += _arrows(meeting, number, zero_s)
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}, separators=(",", ":"))


def _names(rank: int, node: str) -> Iterator[Dict[str, Any]]:
    yield _meta("process_name", rank, 0, f"rank {rank} on {node}")
    yield {"ph": "M", "name": "process_sort_index", "pid": rank + 1, "tid": 0, "args": {"sort_index": rank}}
    yield _meta("thread_name", rank, _PHASES, "phases")
    yield _meta("thread_name", rank, _CALLS, "communication")


def _meta(what: str, rank: int, track: int, name: str) -> Dict[str, Any]:
    # Process 0 has a meaning of its own in Perfetto.
    return {"ph": "M", "name": what, "pid": rank + 1, "tid": track, "args": {"name": name}}


def _phases(rank: int, capture: RankCapture, clock: Clock, zero_s: float) -> Iterator[Dict[str, Any]]:
    rows: List[Any] = []
    for chunk in capture.capture.packed.get(PHASES_NAME, ()):
        rows += PHASE_RECORD.iter_unpack(chunk[: len(chunk) // PHASE_RECORD.size * PHASE_RECORD.size])
    for (phase, begun), (_, ended) in zip(rows, rows[1:]):
        if 0 < phase < len(PHASES):  # "other" is the gap between
            begun_s, ended_s = clock.seconds(begun), clock.seconds(ended)
            yield _slice(rank, _PHASES, PHASES[phase], begun_s - zero_s, ended_s - begun_s, {})


def _slice(rank: int, track: int, name: str, at_s: float, took_s: float, more: Dict[str, Any]) -> Dict[str, Any]:
    made = {"ph": "X", "name": name, "pid": rank + 1, "tid": track, "ts": at_s * 1e6, "dur": max(took_s, 0.0) * 1e6}
    return {**made, "args": more} if more else made


def _call(call: TimedCall, meeting: Any, zero_s: float) -> Iterator[Dict[str, Any]]:
    told: Dict[str, Any] = {"at": call.place, "iteration": call.iteration, "communicator": call.communicator}
    if call.size_bytes >= 0:
        told["bytes"] = call.size_bytes
    waiting_s = 0.0
    if isinstance(meeting, Meeting):
        waiting_s = meeting.waiting_s(call)
        told.update(waiting_us=waiting_s * 1e6, transfer_us=meeting.transfer_s(call) * 1e6)
    yield _slice(call.rank, _CALLS, call.operation, call.begun_s - zero_s, call.ended_s - call.begun_s, told)
    if waiting_s > 0:
        yield _slice(call.rank, _CALLS, "waiting", call.begun_s - zero_s, waiting_s, {})


def _arrows(meeting: Meeting, number: int, zero_s: float) -> Iterator[Dict[str, Any]]:
    last = max(meeting.calls, key=lambda call: (call.begun_s, call.rank))
    for call in meeting.calls:
        left_before = call.ended_s <= last.begun_s
        if call is last or left_before or meeting.waiting_s(call) * 1e6 < _ARROW_US:
            continue
        arrow = {"name": "made wait", "cat": "late", "id": number * 4096 + call.rank, "tid": _CALLS}
        # Each end lies within a slice, and the head a nanosecond after the tail: Perfetto drops arrows back in time.
        yield {**arrow, "ph": "s", "pid": last.rank + 1, "ts": (last.begun_s - zero_s) * 1e6}
        yield {**arrow, "ph": "f", "bp": "e", "pid": call.rank + 1, "ts": (last.begun_s - zero_s) * 1e6 + 1e-3}
