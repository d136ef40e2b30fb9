"""Tables of nccl-tests (``all_reduce_perf`` and its sisters), old columns and new."""

from __future__ import annotations

import re
from typing import List, Optional

from chainerdoctor.facts.log import NcclTestsTable
from chainerdoctor.logs.sections import Section

_START = re.compile(
    r"# nThread \d|# nccl-tests version|# Collective test starting|# Using devices|#\s+out-of-place\s+in-place"
)
_DEVICE = re.compile(
    r"#\s+Rank\s+(\d+)\s+(?:Group\s+\d+\s+)?Pid\s+\d+ on\s+(\S{1,100}) device\s+(\d+) \[([\w:.]{1,20})\] (.{1,60})"
)
#: size count type [redop] [root] | time algbw busbw wrong | time algbw busbw wrong
_ROW = re.compile(
    r"\s*(\d{1,20})\s+\d{1,20}\s+[a-z_]\w{0,20}\s+(?:[a-z]\w{0,12}\s+)?(?:-?\d{1,7}\s+)?"
    r"(\d{1,15}(?:\.\d{1,4})?)\s+(\d{1,9}\.\d{1,4})\s+(\d{1,9}\.\d{1,4})\s+(\S{1,12})"
    r"(?:\s+(\d{1,15}(?:\.\d{1,4})?)\s+(\d{1,9}\.\d{1,4})\s+(\d{1,9}\.\d{1,4})\s+(\S{1,12}))?\s*$"
)
_BOUNDS = re.compile(r"# Out of bounds values ?: (-?\d{1,20}) (\w+)")
_AVERAGE = re.compile(r"# Avg bus bandwidth\s*: (\d{1,9}(?:\.\d{1,9})?)")
_MAX_ROWS = 4096


def opened(text: str) -> Optional[Section]:
    """The section that this line begins, if it does."""
    return _Table() if text[:1] == "#" and _START.match(text) else None


class _Table(Section):
    kind = "nccl-tests"

    def __init__(self) -> None:
        super().__init__()
        self._devices: List[str] = []
        self._sizes: List[int] = []
        self._busbw: List[float] = []
        self._wrong: Optional[int] = None
        self._bounds: Optional[int] = None
        self._average: Optional[float] = None
        self._other = 0
        self._checks = True

    def feed(self, text: str, number: int) -> bool:
        if self._average is not None and text[:1] == "#" and _START.match(text):
            return False  # the next test begins a table of its own
        row = _ROW.match(text)
        if row is not None:
            self._other = 0
            self._row(row)
            return True
        if text[:1] != "#":
            # Warnings and training output can stand between the rows.
            self._other += 1
            return self._other < 20 and not text[:1].isalpha()
        self._other = 0
        device = _DEVICE.match(text)
        if device is not None:
            if len(self._devices) < 8192:
                self._devices.append(f"{device[2]}/{device[3]} {device[5].strip()}")
            return True
        bounds = _BOUNDS.match(text)
        if bounds is not None:
            self._bounds = int(bounds[1])
        average = _AVERAGE.match(text)
        if average is not None:
            self._average = float(average[1])
        if " error" in text and "wrong" not in text:
            self._checks = False  # old columns hold a difference, not a count
        return True

    def _row(self, row: re.Match[str]) -> None:
        if len(self._sizes) < _MAX_ROWS:
            self._sizes.append(int(row[1]))
            self._busbw.append(float(row[4]))
        for cell in (row[5], row[9]):
            if self._checks and cell is not None and cell.isdigit():
                self._wrong = (self._wrong or 0) + int(cell)

    def close(self) -> None:
        if not (self._devices or self._sizes or self._average is not None):
            return
        self.facts.append(
            NcclTestsTable(
                self.path,
                self.line,
                tuple(self._devices),
                tuple(self._sizes),
                tuple(self._busbw),
                self._wrong,
                self._bounds,
                self._average,
            )
        )
