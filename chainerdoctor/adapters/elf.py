"""GNU build ids of ELF files, read from their notes."""

from __future__ import annotations

import struct
from typing import Optional


def build_id(path: str) -> Optional[str]:
    """The build id in hexadecimal, ``None`` where the file has none or is not a 64-bit little-endian ELF file.

    Format: ELF-64 object file format, program headers of type PT_NOTE; note name ``GNU``, type 3 (NT_GNU_BUILD_ID).

    Raises:
        OSError: the file cannot be read.
    """
    with open(path, "rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:6] != b"\x7fELF\x02\x01":
            return None
        offset, size, count = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
        for number in range(count):
            file.seek(offset + number * size)
            entry = file.read(56)
            if len(entry) < 56 or struct.unpack_from("<I", entry)[0] != 4:  # PT_NOTE
                continue
            start, length = struct.unpack_from("<Q", entry, 8)[0], struct.unpack_from("<Q", entry, 32)[0]
            file.seek(start)
            found = _build_id_in(file.read(min(length, 65536)))
            if found:
                return found
    return None


def _build_id_in(notes: bytes) -> Optional[str]:
    at = 0
    while at + 12 <= len(notes):
        name_size, data_size, kind = struct.unpack_from("<III", notes, at)
        name_at = at + 12
        data_at = name_at + (name_size + 3) // 4 * 4
        if kind == 3 and notes[name_at : name_at + name_size] == b"GNU\0":
            return notes[data_at : data_at + data_size].hex()
        at = data_at + (data_size + 3) // 4 * 4
    return None
