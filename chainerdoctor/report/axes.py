"""Axes of charts: which numbers are marked, and where a value lies between the ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Iterable, List, Tuple

#: Numbers beyond are on no axis, so that the arithmetic of its ends cannot overflow.
_LARGEST, _SMALLEST = 1e300, 1e-300


@dataclass(frozen=True)
class Axis:
    """From ``low`` to ``high``; ``ticks`` are the values that are marked, with their texts."""

    low: float
    high: float
    log: bool
    ticks: Tuple[Tuple[float, str], ...]

    def at(self, value: float) -> float:
        """0 at the low end, 1 at the high one; NaN for what no axis holds (not finite, or not above 0)."""
        if not _can_show(value, self.log):
            return float("nan")
        if self.log:
            return (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return (value - self.low) / (self.high - self.low)


def axis_of(values: Iterable[float], log: bool, most_ticks: int = 6) -> Axis:
    """An axis that holds all finite values (above 0, if logarithmic); without any, from 0 to 1 (1 to 10)."""
    shown = [value for value in values if _can_show(value, log)]
    if not shown:
        shown = [1.0, 10.0] if log else [0.0, 1.0]
    return _log_axis(min(shown), max(shown), most_ticks) if log else _linear_axis(min(shown), max(shown), most_ticks)


def _can_show(value: float, log: bool) -> bool:
    return (_SMALLEST if log else -_LARGEST) <= value <= _LARGEST


def _linear_axis(low: float, high: float, most: int) -> Axis:
    largest = max(abs(low), abs(high))
    if high - low <= 1e-9 * largest or largest < _SMALLEST:
        room = largest * 0.1 if largest >= _SMALLEST else 1.0
        low, high = low - room, high + room
    step = _nice((high - low) / max(1, most - 1))
    first, last = math.floor(low / step), math.ceil(high / step)
    digits = max(0, -math.floor(math.log10(step)))
    ticks = [(n * step, _linear_text(n * step, digits)) for n in range(first, last + 1)]
    return Axis(first * step, last * step, False, tuple(ticks))


def _nice(step: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power: float = 10.0 ** math.floor(math.log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * 0.999999)


def _linear_text(value: float, digits: int) -> str:
    value = value + 0.0  # no -0
    return f"{value:.{digits}f}" if abs(value) < 1e6 and digits < 7 else f"{value:.3g}"


def _log_axis(low: float, high: float, most: int) -> Axis:
    first, last = math.floor(math.log10(low) + 1e-9), math.ceil(math.log10(high) - 1e-9)
    last = max(last, first + 1)
    if last - first == 1:
        values: List[float] = [factor * 10.0**first for factor in (1, 2, 5, 10)]
    else:
        step = -(-(last - first) // max(1, most - 1))
        values = [10.0**n for n in range(first, last + 1, step)]
    return Axis(10.0**first, 10.0**last, True, tuple((value, f"{value:.3g}") for value in values))


def byte_axis(low: float, high: float, most_ticks: int = 6) -> Axis:
    """A logarithmic axis of sizes in bytes, marked in KiB and MiB."""
    first, last = math.floor(math.log2(low) + 1e-9), math.ceil(math.log2(high) - 1e-9)
    last = max(last, first + 1)
    step = -(-(last - first) // max(1, most_ticks - 1))
    ticks = tuple((2.0**n, bytes_text(2.0**n)) for n in range(first, last + 1, step))
    return Axis(2.0**first, 2.0**last, True, ticks)


def bytes_text(size: float) -> str:
    """Bytes for a person: 512 B, 64 KiB, 1.5 GiB."""
    for unit, name in ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size:.4g} B"


def thinned(count: int, most: int) -> List[int]:
    """Indices of at most ``most`` of ``count`` things, evenly spaced, the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(n * (count - 1) / (most - 1)) for n in range(most)}) if most > 1 else [count - 1]
