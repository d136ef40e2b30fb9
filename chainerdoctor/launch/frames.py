"""Frames: how a rank's report travels over the launcher's standard output.

Launchers mix the lines of many ranks, cut them, and put prefixes before them. So a message (JSON, compressed) is cut
into pieces of less than a kilobyte; each is one line ``<@cd1 RANK MESSAGE PART/PARTS CRC PAYLOAD@>`` that stands by
itself, with a CRC-32 over everything before it. Every frame is sent twice, the second time in another order, so that
one cut line loses nothing.
"""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

#: Characters of payload in a frame. The whole line stays below 1,024 bytes, far below PIPE_BUF.
_PIECE = 900
_FRAME = re.compile(rb"<@cd1 (\d{1,9}) (\d{1,6}) (\d{1,6})/(\d{1,6}) ([0-9a-f]{8}) ([A-Za-z0-9+/=]*)@>")
#: A message may not unpack to more than this (a hostile or broken stream must not fill the memory).
_MOST_BYTES = 64 * 1024 * 1024


def frames(rank: int, message: int, content: Any) -> List[bytes]:
    """The lines that carry ``content`` (JSON values), each ending in a newline and starting with one.

    The leading newline ends whatever a program printed before without one.
    """
    packed = base64.b64encode(zlib.compress(json.dumps(content).encode("utf-8"), 6)).decode("ascii")
    pieces = [packed[at : at + _PIECE] for at in range(0, len(packed), _PIECE)]
    lines = []
    for number, piece in enumerate(pieces, 1):
        head = f"{rank} {message} {number}/{len(pieces)}"
        crc = zlib.crc32(f"{head} {piece}".encode("ascii"))
        lines.append(f"\n<@cd1 {head} {crc:08x} {piece}@>\n".encode("ascii"))
    return lines


@dataclass(frozen=True)
class Message:
    """A message that arrived whole."""

    rank: int
    number: int
    content: Any


class FrameReader:
    """Takes bytes as they come and gives messages as they are complete. What is not a frame is kept as noise."""

    def __init__(self) -> None:
        self._buffer = b""
        self._parts: Dict[Tuple[int, int], Dict[int, str]] = {}
        self._wanted: Dict[Tuple[int, int], int] = {}
        self._done: Set[Tuple[int, int]] = set()
        #: Frames whose checksum was wrong; a second copy usually makes up for them.
        self.damaged = 0
        self._noise = b""

    @property
    def noise(self) -> bytes:
        """The last of what was printed between frames (and what could still become one), at most 16 KiB."""
        return (self._noise + self._buffer)[-16384:]

    def feed(self, data: bytes) -> Iterator[Message]:
        """Give the messages that these bytes complete. Never raises, whatever the bytes are."""
        self._buffer += data
        at = 0
        for found in _FRAME.finditer(self._buffer):
            self._add_noise(self._buffer[at : found.start()])
            at = found.end()
            message = self._take(found)
            if message is not None:
                yield message
        # A frame that is not complete yet starts within the last kilobyte and a bit.
        start = self._buffer.rfind(b"<@cd1", max(at, len(self._buffer) - 2048))
        keep = start if start >= 0 else max(at, len(self._buffer) - 4)
        self._add_noise(self._buffer[at:keep])
        self._buffer = self._buffer[keep:]

    def incomplete(self) -> Dict[int, Tuple[int, int]]:
        """Ranks with a message of which pieces are missing: rank → (pieces here, pieces wanted)."""
        return {key[0]: (len(parts), self._wanted[key]) for key, parts in self._parts.items()}

    def _add_noise(self, data: bytes) -> None:
        data = re.sub(rb"\n{2,}", b"\n", data)
        if data.strip():
            self._noise = (self._noise + data)[-16384:]

    def _take(self, found: re.Match[bytes]) -> Optional[Message]:
        rank_text, message_text, part_text, parts_text, crc, payload = (g.decode("ascii") for g in found.groups())
        if int(crc, 16) != zlib.crc32(f"{rank_text} {message_text} {part_text}/{parts_text} {payload}".encode("ascii")):
            self.damaged += 1
            return None
        key = (int(rank_text), int(message_text))
        if key in self._done:
            return None
        parts = self._parts.setdefault(key, {})
        parts[int(part_text)] = payload
        self._wanted[key] = int(parts_text)
        if len(parts) < int(parts_text):
            return None
        del self._parts[key]
        self._done.add(key)
        try:
            unpacker = zlib.decompressobj()
            text = unpacker.decompress(base64.b64decode("".join(parts[n] for n in sorted(parts))), _MOST_BYTES)
            return Message(key[0], key[1], json.loads(text))
        except (ValueError, zlib.error, RecursionError):
            # The checksums were right, so somebody forged it or the agent is broken.
            self.damaged += 1
            return None
