"""A rank's last events in a memory-mapped file: what a process did survives it, whatever ended it.

The file has a head, a block of the present state that is overwritten in place, and two rows of slots: the last calls of
communicators, and milestones that are kept. A slot holds a sequence number, a length, a CRC-32 and JSON text; one that
was cut in the middle of writing does not check and is left out.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import struct
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

MAGIC = b"CDRING1\n"
CALLS, MILESTONES = 128, 64
_SLOT_BYTES = 512
_HEAD_BYTES = 1024
#: Sequence number of the call that the rank is inside (0: none), when that changed last (monotonic ns), phase, iteration.
_STATE = struct.Struct("<QQQQ")
_STATE_AT = _HEAD_BYTES
#: Two places for the heartbeat, written in turn.
_BEATS_AT, _BEAT_BYTES = _HEAD_BYTES + 64, 1536
_END_AT = _BEATS_AT + 2 * _BEAT_BYTES
_CALLS_AT = 8192
_MILESTONES_AT = _CALLS_AT + CALLS * _SLOT_BYTES
_SIZE = _MILESTONES_AT + MILESTONES * _SLOT_BYTES
_SLOT = struct.Struct("<QHI")


def ring_path(folder: Path, rank: int) -> Path:
    """Where a rank keeps its ring."""
    return folder / f"rank-{rank:05d}.ring"


class Ring:
    """The writing side. Calls and states are written by the training's thread, heartbeats by the watcher's.

    Raises:
        OSError: the file cannot be made or mapped.
    """

    def __init__(self, path: Path, head: Dict[str, Any]) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        # Written whole, so that a full disk says so here and not as SIGBUS later.
        os.write(self._file, bytes(_SIZE))
        self._map: Optional[mmap.mmap] = mmap.mmap(self._file, _SIZE)
        self._inside = self._phase = self._iteration = self._last = 0
        self._milestones = self._beats = 0
        self._put(len(MAGIC), 1, json.dumps(head), _HEAD_BYTES - len(MAGIC))
        self._map[: len(MAGIC)] = MAGIC
        self._state(time.monotonic_ns())
        os.register_at_fork(after_in_child=self._forget)

    def enter(self, call: Dict[str, Any]) -> int:
        """A call begins; the answer is its sequence number."""
        self._last += 1
        at = _CALLS_AT + (self._last - 1) % CALLS * _SLOT_BYTES
        self._put(at, self._last, json.dumps(call, separators=(",", ":")), _SLOT_BYTES)
        self._inside = self._last
        self._state(time.monotonic_ns())
        return self._last

    def leave(self) -> None:
        """It has returned, or raised."""
        self._inside = 0
        self._state(time.monotonic_ns())

    def phase(self, phase: int, iteration: int) -> None:
        """The training is in another phase or iteration."""
        self._phase, self._iteration = phase, iteration
        self._state(time.monotonic_ns())

    def milestone(self, content: Dict[str, Any]) -> None:
        """Something to keep; what comes after :data:`MILESTONES` of them is dropped."""
        if self._milestones < MILESTONES:
            at = _MILESTONES_AT + self._milestones * _SLOT_BYTES
            self._milestones += 1
            self._put(at, self._milestones, json.dumps(content, separators=(",", ":")), _SLOT_BYTES)

    def beat(self, content: Dict[str, Any]) -> None:
        """The watcher's word: it is alive, and what it sees."""
        self._beats += 1
        at = _BEATS_AT + self._beats % 2 * _BEAT_BYTES
        self._put(at, self._beats, json.dumps(content, separators=(",", ":")), _BEAT_BYTES)

    def end(self, content: Dict[str, Any]) -> None:
        """The program has ended."""
        self._put(_END_AT, 1, json.dumps(content, separators=(",", ":")), _CALLS_AT - _END_AT)

    def sync(self) -> None:
        """Make a network file system show what is here to other nodes."""
        with contextlib.suppress(OSError):
            os.fsync(self._file)

    def state(self) -> Tuple[int, int, int]:
        """The call that the rank is inside (0: none), since when (monotonic ns), and the phase."""
        inside, since, phase, _ = _STATE.unpack_from(self._map or bytes(_SIZE), _STATE_AT)
        return inside, since, phase

    def _state(self, now_ns: int) -> None:
        if self._map is not None:
            _STATE.pack_into(self._map, _STATE_AT, self._inside, now_ns, self._phase, self._iteration)

    def _put(self, at: int, number: int, text: str, room: int) -> None:
        if self._map is None:
            return
        data = text.encode()
        if len(data) > room - _SLOT.size:
            data = b'{"cut":true}'
        _SLOT.pack_into(self._map, at, number, len(data), zlib.crc32(data))
        self._map[at + _SLOT.size : at + _SLOT.size + len(data)] = data

    def _forget(self) -> None:
        """A forked child must not write its parent's ring."""
        self._map = None


@dataclass
class RingContent:
    """What a ring's file held. ``inside`` is the call that had begun and not returned."""

    head: Dict[str, Any]
    inside: Optional[Dict[str, Any]] = None
    inside_number: int = 0
    changed_ns: int = 0
    phase: int = 0
    iteration: int = 0
    beat_number: int = 0
    beat: Dict[str, Any] = field(default_factory=dict)
    end: Optional[Dict[str, Any]] = None
    calls: List[Dict[str, Any]] = field(default_factory=list)
    milestones: List[Dict[str, Any]] = field(default_factory=list)


def read_ring(path: Path, whole: bool = True) -> RingContent:
    """Read a ring; without ``whole`` only its head and present state.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no ring.
    """
    with open(path, "rb") as file:
        data = file.read(_SIZE if whole else _CALLS_AT)
    if not data.startswith(MAGIC) or len(data) < _CALLS_AT:
        raise ValueError("not a ring of chainerdoctor")
    head = _take(data, len(MAGIC))
    made = RingContent({} if head is None else head[1])
    made.inside_number, made.changed_ns, made.phase, made.iteration = _STATE.unpack_from(data, _STATE_AT)
    for at in (_BEATS_AT, _BEATS_AT + _BEAT_BYTES):
        found = _take(data, at)
        if found is not None and found[0] > made.beat_number:
            made.beat_number, made.beat = found
    end = _take(data, _END_AT)
    made.end = None if end is None else end[1]
    if whole:
        numbered = [_take(data, _CALLS_AT + n * _SLOT_BYTES) for n in range(CALLS)]
        rows = sorted((each for each in numbered if each is not None), key=lambda each: each[0])
        made.calls = [{**content, "n": number} for number, content in rows]
        kept = [_take(data, _MILESTONES_AT + n * _SLOT_BYTES) for n in range(MILESTONES)]
        made.milestones = [each[1] for each in kept if each is not None]
        made.inside = next((each for each in made.calls if each["n"] == made.inside_number), None)
    return made


def _take(data: bytes, at: int) -> Optional[Tuple[int, Dict[str, Any]]]:
    if at + _SLOT.size > len(data):
        return None
    number, length, crc = _SLOT.unpack_from(data, at)
    text = data[at + _SLOT.size : at + _SLOT.size + length]
    if not number or len(text) < length or zlib.crc32(text) != crc:
        return None
    try:
        made = json.loads(text.decode())
    except ValueError:
        return None
    return (number, made) if isinstance(made, dict) else None
