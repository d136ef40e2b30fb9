"""A rank's capture: a file that is only ever appended to, and can be read whatever happened to its writer.

The file is a row of chunks, each ``CD``, a kind, the payload's length and CRC-32, and the payload. A chunk of kind ``J``
holds JSON objects, one a line, each with the key ``what``; one of kind ``B`` holds a name and packed numbers. A reader
takes every chunk that is whole and looks for the next ``CD`` after one that is not, so that a crash, a full disk or a
flipped bit costs the chunk that it hits.

Chunks are written with one ``write`` each, without mmap, locks or renames, which network file systems do well enough.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import threading
import time
import zlib
from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Tuple

MAGIC = b"CDCAPTURE1\n"
_HEAD = struct.Struct("<2scII")
_MARK = b"CD"
_JSON, _PACKED = b"J", b"B"
#: A capture's size is bounded: detail is dropped from here on …
MOST_DETAIL_BYTES = 48 * 1024 * 1024
#: … and everything but the last words from here on.
MOST_BYTES = 64 * 1024 * 1024
#: What a reader believes a chunk may be at most.
_MOST_CHUNK_BYTES = 16 * 1024 * 1024
#: JSON lines are gathered up to this size, or this long.
_BUFFER_BYTES = 32 * 1024
_PATIENCE_S = 0.05


class Spool:
    """Appends to one process's capture. Never raises into the training: what could not be written is counted.

    After a fork the child has a capture of its own, named after its process id and made when it first tells something.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._base = path
        self._handle: Optional[int] = None
        self._lines: List[str] = []
        self._size = 0
        self._flushed_s = time.monotonic()
        self._lock = threading.RLock()  # a signal handler may tell something, too
        self.written_bytes = 0
        #: Records that are not in the file, by reason.
        self.lost: Dict[str, int] = {}
        os.register_at_fork(after_in_child=self._in_child)

    def tell(self, what: str, content: Dict[str, Any], *, detail: bool = False, now: bool = False) -> None:
        """Record a JSON object under the name ``what``.

        ``detail`` is what may be missing without harm: it is dropped once the file holds
        :data:`MOST_DETAIL_BYTES`. ``now`` writes it, and what waits, to the file at once.
        """
        if self.written_bytes > (MOST_DETAIL_BYTES if detail else MOST_BYTES) and not now:
            self._lose("over the size of a capture")
            return
        line = json.dumps({"what": what, **content}, separators=(",", ":"))
        with self._lock:
            self._lines.append(line)
            self._size += len(line)
        if now or self._size > _BUFFER_BYTES:
            self.flush()
        else:
            self.flush_if_due()

    def flush_if_due(self) -> None:
        """Flush if something has waited for a while; cheap enough for every iteration."""
        if self._lines and time.monotonic() - self._flushed_s > _PATIENCE_S:
            self.flush()

    def tell_packed(self, name: str, data: bytes) -> None:
        """Record packed numbers; what they mean is between the instrument and its reader. They count as detail."""
        if self.written_bytes > MOST_DETAIL_BYTES:
            self._lose("over the size of a capture")
            return
        self.flush()
        label = name.encode()
        self._write(_PACKED, bytes([len(label)]) + label + zlib.compress(data, 1))

    def flush(self) -> None:
        """Hand what waits to the operating system, where it survives this process."""
        with self._lock:
            lines, self._lines, self._size = self._lines, [], 0
        self._flushed_s = time.monotonic()
        if lines:
            self._write(_JSON, "\n".join(lines).encode("utf-8", "surrogatepass"))

    def close(self) -> None:
        """Write what waits, and what was lost."""
        if self.lost:
            self.tell("lost", {"records": dict(self.lost)}, now=True)
        self.flush()
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)

    def _write(self, kind: bytes, payload: bytes) -> None:
        chunk = _HEAD.pack(_MARK, kind, len(payload), zlib.crc32(payload)) + payload
        try:
            if self._handle is None:
                self._handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
                chunk = MAGIC + chunk
            # What a full disk cuts off is skipped by the reader; the rest must not be tried twice.
            written = os.write(self._handle, chunk)
            self.written_bytes += written
            if written < len(chunk):
                self._lose("the file system took only a part")
        except OSError as error:
            self._lose(error.strerror or str(error))

    def _lose(self, why: str) -> None:
        self.lost[why] = self.lost.get(why, 0) + 1

    def _in_child(self) -> None:
        self._lock = threading.RLock()  # a signal handler may tell something, too
        self._lines, self._size, self.lost = [], 0, {}
        handle, self._handle = self._handle, None
        if handle is not None:
            with contextlib.suppress(OSError):
                os.close(handle)
        stem = self._base[: -len(".capture")] if self._base.endswith(".capture") else self._base
        self.path = f"{stem}.child-{os.getpid()}.capture"
        self.written_bytes = 0


class Stride:
    """Which of an endless row of records to keep: all at first, then every second, every fourth …

    Of n records about ``1024 · (1 + log2(n / 1024))`` are kept, so a capture grows with the logarithm of the training's
    length. The writer folds what it leaves out into the next record that it keeps.
    """

    def __init__(self, block: int = 1024) -> None:
        self._block = block
        self._kept = 0
        self._since = 0
        self.every = 1

    def keep(self) -> bool:
        """Whether this record, the next in the row, is one of those to keep."""
        self._since += 1
        if self._since < self.every:
            return False
        self._since = 0
        self._kept += 1
        if self._kept % self._block == 0:
            self.every *= 2
        return True


@dataclass
class Capture:
    """What a file held: ``records`` in the order of writing, ``packed`` ones by name, and what was wrong with it."""

    path: str
    records: List[Dict[str, Any]] = field(default_factory=list)
    packed: Dict[str, List[bytes]] = field(default_factory=dict)
    damage: Tuple[str, ...] = ()

    def all(self, what: str) -> List[Dict[str, Any]]:
        """Records of this name."""
        return [record for record in self.records if record["what"] == what]

    def last(self, what: str) -> Optional[Dict[str, Any]]:
        """The last record of this name."""
        return next((record for record in reversed(self.records) if record["what"] == what), None)


def read_capture(path: str) -> Capture:
    """Read what is readable.

    Raises:
        OSError: the file cannot be read at all.
        ValueError: it is no capture, or larger than any that is written; the text is one line.
    """
    with open(path, "rb") as file:
        data = file.read(2 * MOST_BYTES + 1)
    if len(data) > 2 * MOST_BYTES:
        raise ValueError("larger than a capture may be")
    if not data.startswith(MAGIC):
        raise ValueError("not a capture of chainerdoctor" if data else "empty")
    capture, damage = Capture(path), []
    at = len(MAGIC)
    while at < len(data):
        payload, kind, end = _chunk(data, at)
        if payload is None:
            following = _next_chunk(data, at + 1)
            damage.append(f"{'the end' if following is None else f'{following - at} bytes'} at {at} cannot be read")
            at = len(data) if following is None else following
            continue
        if not _take(capture, kind, payload):
            damage.append(f"the chunk at {at} holds something else than records")
        at = end
    capture.damage = tuple(damage)
    return capture


def _chunk(data: bytes, at: int) -> Tuple[Optional[bytes], bytes, int]:
    if at + _HEAD.size > len(data):
        return None, b"", at
    mark, kind, length, crc = _HEAD.unpack_from(data, at)
    end = at + _HEAD.size + length
    if mark != _MARK or length > _MOST_CHUNK_BYTES or end > len(data):
        return None, b"", at
    payload = data[at + _HEAD.size : end]
    return (payload, kind, end) if zlib.crc32(payload) == crc else (None, b"", at)


def _next_chunk(data: bytes, at: int) -> Optional[int]:
    while True:
        at = data.find(_MARK, at)
        if at < 0:
            return None
        if _chunk(data, at)[0] is not None:
            return at
        at += 1


def _take(capture: Capture, kind: bytes, payload: bytes) -> bool:
    try:
        if kind == _JSON:
            for line in payload.decode("utf-8", "replace").split("\n"):
                record = json.loads(line)
                if not isinstance(record, dict) or not isinstance(record.get("what"), str):
                    return False
                capture.records.append(record)
            return True
        if kind == _PACKED and payload and len(payload) > payload[0]:
            name = payload[1 : 1 + payload[0]].decode()
            unpacker = zlib.decompressobj()
            capture.packed.setdefault(name, []).append(
                unpacker.decompress(payload[1 + payload[0] :], _MOST_CHUNK_BYTES)
            )
            return True
    except (ValueError, RecursionError, zlib.error):
        return False
    return False
