"""When a stream really came to a communicator's call and passed it: pairs of CUDA events around calls that only enqueue.

Events are read once they have happened, at the end of an iteration; nothing is synchronised for them. Times are put on
the rank's own clock by one event at the beginning whose host time is known; each later event is measured from the one
before, because CUDA gives differences as float32 milliseconds.
"""

from __future__ import annotations

import struct
import sys
from collections import deque
from typing import Any, Deque, Optional, Tuple

from chainerdoctor.instrument.calls import Call
from chainerdoctor.instrument.clocks import now_ns
from chainerdoctor.instrument.spool import Spool

#: Number of the record (in the order of calls), beginning and end on the stream (ns of this rank's clock).
STREAM_RECORD = struct.Struct("<Iqq")
STREAM_NAME = "comm-streams"
_MOST_PENDING = 4096


class StreamTimes:
    """The events of one process; idle where CuPy is not in use or calls block."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._pending: Deque[Tuple[int, Any, Any]] = deque()
        self._begun: Any = None
        self._last: Optional[Tuple[Any, int]] = None
        self._rows = bytearray()

    def before(self, call: Call) -> None:
        """The host is about to make the call."""
        self._begun = None
        cupy = sys.modules.get("cupy")
        if cupy is None or getattr(call.comm, "nccl_comm", None) is None or len(self._pending) > _MOST_PENDING:
            return
        stream = call.stream if call.stream is not None else cupy.cuda.Stream.null
        if self._last is None:
            base = cupy.cuda.Event()
            base.record(cupy.cuda.Stream.null)
            base.synchronize()  # once in a program
            self._last = (base, now_ns())
        self._begun = (cupy.cuda.Event(), stream)
        self._begun[0].record(stream)

    def after(self, call: Call, number: int) -> None:
        """The host has made it; ``number`` is that of its record."""
        if self._begun is not None:
            event, stream = self._begun
            end = sys.modules["cupy"].cuda.Event()
            end.record(stream)
            self._pending.append((number, event, end))
            self._begun = None

    def collect(self) -> None:
        """Take what has happened."""
        while self._pending and self._pending[0][2].done:
            number, begun, ended = self._pending.popleft()
            assert self._last is not None
            elapsed = sys.modules["cupy"].cuda.get_elapsed_time
            began_ns = self._last[1] + int(elapsed(self._last[0], begun) * 1e6)
            ended_ns = began_ns + int(elapsed(begun, ended) * 1e6)
            self._last = (ended, ended_ns)
            self._rows += STREAM_RECORD.pack(number, began_ns, ended_ns)
        if len(self._rows) >= 512 * STREAM_RECORD.size:
            self._flush()

    def finish(self) -> None:
        """The program has ended."""
        self.collect()
        self._flush()

    def _flush(self) -> None:
        rows, self._rows = bytes(self._rows), bytearray()
        if rows:
            self._spool.tell_packed(STREAM_NAME, rows)
