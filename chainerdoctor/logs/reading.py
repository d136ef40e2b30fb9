"""Files and standard input as blocks of whole lines; gzip and UTF-16 are undone, memory stays bounded."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from typing import BinaryIO, Iterator, List

#: Bytes read at a time. Large enough that per-block work does not matter, small enough to stay in the caches.
BLOCK_BYTES = 1 << 20

#: A line longer than this is cut: nothing that is recognised is longer, and one endless line must not fill memory.
MAX_LINE_BYTES = 1 << 16


class LogUnreadable(ValueError):
    """A file cannot be opened or read. The text is one line for the user."""


class LogReader:
    """Iterates over lists of lines (bytes, without line ends) and counts what it saw.

    ``size_bytes`` counts bytes as they lie on the disk's side of decompression; ``damage`` tells what was lost.

    Raises:
        LogUnreadable: on iteration, if the file cannot be opened or read.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.size_bytes = 0
        self.damage: List[str] = []
        self._long_lines = 0

    def __iter__(self) -> Iterator[List[bytes]]:
        try:
            raw: BinaryIO = sys.stdin.buffer if self.path == "-" else open(self.path, "rb")  # noqa: SIM115
        except OSError as error:
            raise LogUnreadable(f"{self.path}: {error.strerror or error}") from None
        try:
            yield from self._lines(raw)
        except IsADirectoryError:
            raise LogUnreadable(f"{self.path}: a directory, not a file") from None
        except OSError as error:
            raise LogUnreadable(f"{self.path}: {error.strerror or error}") from None
        finally:
            if raw is not sys.stdin.buffer:
                raw.close()
        if self._long_lines:
            self.damage.append(f"{self._long_lines} lines longer than {MAX_LINE_BYTES} bytes were cut")

    def _blocks(self, raw: BinaryIO) -> Iterator[bytes]:
        first = raw.read(BLOCK_BYTES)
        if first[:2] != b"\x1f\x8b":
            while first:
                yield first
                first = raw.read(BLOCK_BYTES)
            return
        unpacked = gzip.GzipFile(fileobj=io.BufferedReader(_Rewound(first, raw), BLOCK_BYTES))
        while True:
            try:
                block = unpacked.read(BLOCK_BYTES)
            except (EOFError, zlib.error, OSError) as error:
                # What was unpacked before the fault is still worth reading.
                self.damage.append(f"the gzip stream is damaged or cut: {error}")
                return
            if not block:
                return
            yield block

    def _lines(self, raw: BinaryIO) -> Iterator[List[bytes]]:
        rest = b""
        decode = None
        start = True
        skipping = False
        for block in self._blocks(raw):
            self.size_bytes += len(block)
            if start:
                start = False
                decode = _decoder(block)
                if block[:3] == b"\xef\xbb\xbf":
                    block = block[3:]
            if decode is not None:
                block = decode(block)
            if skipping:
                # The tail of a line that was cut: drop it up to its end.
                at = block.find(b"\n")
                if at < 0:
                    continue
                block = block[at + 1 :]
                skipping = False
            lines = (rest + block).split(b"\n")
            rest = lines.pop()
            if len(rest) > MAX_LINE_BYTES:
                lines.append(rest[:MAX_LINE_BYTES])
                self._long_lines += 1
                rest = b""
                skipping = True
            if lines:
                yield lines
        if rest:
            yield [rest]


class _Rewound(io.RawIOBase):
    """A stream whose first bytes were already read (standard input cannot seek)."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first = first
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:  # type: ignore[no-untyped-def]
        chunk = self._first[: len(buffer)] if self._first else self._rest.read(len(buffer))
        self._first = self._first[len(chunk) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)


def _decoder(first: bytes):  # type: ignore[no-untyped-def]
    """UTF-16 (a redirect in PowerShell) becomes UTF-8; anything else is read as bytes and decoded line by line."""
    import codecs

    if first[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return None
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    return lambda block: decoder.decode(block).encode("utf-8", "replace")
