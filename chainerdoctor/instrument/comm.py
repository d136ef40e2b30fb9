"""Times every call of ChainerMN's communicators, with what this rank did between one call and the next.

Nothing is sent inside the training: ranks are matched afterwards by the order of their calls. Clocks are compared when
the first communicator over all ranks is made and when the program has ended (option ``clocks``, true by default).
"""

from __future__ import annotations

import struct
from typing import Any, Dict, List, Mapping, Optional

from chainerdoctor.instrument.calls import MESSAGES, Call, calls_of
from chainerdoctor.instrument.clocks import PingPong, clock_identity, now_ns
from chainerdoctor.instrument.comm_gpu import StreamTimes
from chainerdoctor.instrument.recording import Recording
from chainerdoctor.instrument.runner import Instrument
from chainerdoctor.instrument.training import PHASES

#: Ids of operation, communicator, place and dtype; phase; index, iteration; peer; bytes; beginning and end (ns); and
#: microseconds spent in each phase since the last call.
RECORD = struct.Struct("<HHHHBxxxIIiqqq8I")
CALLS_NAME = "comm-calls"
#: A phase that begins, and when (ns).
PHASE_RECORD = struct.Struct("<Bq")
PHASES_NAME = "comm-phases"
_FLUSH_AT = 512 * RECORD.size
#: In a Call's peer for what is no message between two ranks.
NO_PEER = -1


def instrument(recording: Recording, options: Mapping[str, Any]) -> Instrument:
    """The instrument; options are those of this module's docstring."""
    return _Comm(recording, bool(options.get("clocks", True)))


class _Comm:
    def __init__(self, recording: Recording, clocks: bool) -> None:
        self._recording = recording
        self._clocks = clocks
        self._spool = recording.spool
        self._names: Dict[str, int] = {}
        self._rows = bytearray()
        self._phases = bytearray()
        self._count = 0
        self._spent_ns = [0] * len(PHASES)
        self._since_ns = now_ns()
        self._ping_pong: Optional[PingPong] = None
        self._streams = StreamTimes(recording.spool)
        self._phase_times: List[int] = []

    def start(self) -> None:
        calls, training = calls_of(self._recording.training), self._recording.training
        calls.on_begin.append(self._begins)
        calls.on_end.append(self._ended)
        calls.on_communicator.append(self._communicator)
        training.on_phase.append(self._phase)
        training.on_iteration.append(self._iteration)
        self._recording.at_end.append(self._ends)
        self._spool.tell("clock", {"identity": clock_identity()})

    def stop(self) -> None:
        self._streams.finish()
        self._flush()

    def _phase(self, old: int, new: int) -> None:
        now = now_ns()
        self._spent_ns[old] += now - self._since_ns
        self._since_ns = now
        self._phases += PHASE_RECORD.pack(new, now)

    def _begins(self, call: Call) -> None:
        now = now_ns()
        self._spent_ns[call.phase] += now - self._since_ns
        self._since_ns = now
        self._phase_times = [min(spent // 1000, 0xFFFFFFFF) for spent in self._spent_ns]
        self._streams.before(call)

    def _ended(self, call: Call) -> None:
        self._streams.after(call, self._count)
        name = self._name
        self._rows += RECORD.pack(
            name(f"{call.operation} (async)" if call.stream is not None else call.operation),
            name(call.communicator),
            name(f"{call.place}|{call.via}" if call.via else call.place),
            name(call.dtype),
            call.phase,
            call.index,
            min(call.iteration, 0xFFFFFFFF),
            call.peer if call.operation in MESSAGES else NO_PEER,
            call.size_bytes,
            call.begun_ns,
            call.ended_ns,
            *self._phase_times,
        )
        self._count += 1
        self._spent_ns = [0] * len(PHASES)
        self._since_ns = now_ns()
        if len(self._rows) >= _FLUSH_AT:
            self._flush()

    def _iteration(self, number: int) -> None:
        self._streams.collect()

    def _name(self, text: str) -> int:
        known = self._names.get(text)
        if known is None:
            known = self._names[text] = min(len(self._names), 0xFFFF)
            self._spool.tell("comm-name", {"id": known, "text": text})
        return known

    def _flush(self) -> None:
        rows, self._rows = bytes(self._rows), bytearray()
        if rows:
            self._spool.tell_packed(CALLS_NAME, rows)
        phases, self._phases = bytes(self._phases), bytearray()
        if phases:
            self._spool.tell_packed(PHASES_NAME, phases)

    def _communicator(self, comm: Any, name: str) -> None:
        if self._clocks and self._ping_pong is None and comm.mpi_comm.Get_size() == self._recording.size > 1:
            self._ping_pong = PingPong(comm.mpi_comm)
            self._compare("start")

    def _ends(self, content: Mapping[str, Any]) -> None:
        if self._ping_pong is not None and content.get("how") == "returned":
            self._compare("end")

    def _compare(self, when: str) -> None:
        assert self._ping_pong is not None
        found = self._ping_pong.measure()
        if found is not None:
            told = {"when": when, "offset_ns": found[0], "uncertainty_ns": found[1], "at_ns": now_ns()}
            self._spool.tell("clock-offset", told, now=True)
