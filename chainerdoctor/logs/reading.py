"""Files and standard input as blocks of whole lines; gzip and UTF-16 are undone, memory stays bounded."""

from __future__ import annotations

import sys
import zlib
from typing import BinaryIO, Iterator, List

#: Bytes read at a time. Large enough that per-block work does not matter, small enough to stay in the caches.
BLOCK_BYTES = 1 << 20

#: A line longer than this is cut: nothing that is recognised is longer, and one endless line must not fill memory.
MAX_LINE_BYTES = 1 << 16

#: zlib's number for "expect a gzip header".
_GZIP = 16 + zlib.MAX_WBITS


class LogReadError(ValueError):
    """A file cannot be opened or read. The text is one line for the user."""


class LogReader:
    """Iterates over lists of lines (bytes, without line ends) and counts what it saw.

    ``size_bytes`` counts bytes as they lie on the reader's side of decompression; ``damage`` tells what was lost.

    Raises:
        LogReadError: on iteration, if the file cannot be opened or read.
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
            raise LogReadError(f"{self.path}: {error.strerror or error}") from None
        try:
            yield from self._lines(raw)
        except IsADirectoryError:
            raise LogReadError(f"{self.path}: a directory, not a file") from None
        except OSError as error:
            raise LogReadError(f"{self.path}: {error.strerror or error}") from None
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
        yield from self._unpacked(first, raw)

    def _unpacked(self, packed: bytes, raw: BinaryIO) -> Iterator[bytes]:
        """A gzip file of one or more members; what was unpacked before a fault is still read."""
        member = zlib.decompressobj(_GZIP)
        while packed:
            try:
                block = member.decompress(packed, BLOCK_BYTES)
            except zlib.error as error:
                self.damage.append(f"the gzip stream is damaged: {error}")
                return
            if block:
                yield block
            if member.eof:
                # Zeros after the last member are padding (tape, some copy programs).
                packed = member.unused_data.lstrip(b"\0") or raw.read(BLOCK_BYTES)
                if packed[:2] != b"\x1f\x8b":
                    return
                member = zlib.decompressobj(_GZIP)
            else:
                packed = member.unconsumed_tail or raw.read(BLOCK_BYTES)
        if not member.eof:
            self.damage.append("the gzip stream is cut")

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


def _decoder(first: bytes):  # type: ignore[no-untyped-def]
    """UTF-16 (a redirect in PowerShell) becomes UTF-8; anything else is read as bytes and decoded line by line."""
    import codecs

    if first[:2] not in (b"\xff\xfe", b"\xfe\xff"):
        return None
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    return lambda block: decoder.decode(block).encode("utf-8", "replace")
