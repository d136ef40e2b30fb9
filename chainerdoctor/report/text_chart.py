"""Charts in text, for a terminal: at most 78 columns, readable without colour."""

from __future__ import annotations

import math
import textwrap
from typing import List, Optional, Sequence, Tuple

from chainerdoctor.findings import BarChart, Chart, HeatMap, LineChart
from chainerdoctor.report.axes import Axis, axis_of, byte_axis, bytes_text, thinned
from chainerdoctor.report.plain import one_line

_WIDTH, _HEIGHT = 60, 12
_LABEL = 9
#: One sign a series; more series than signs begin anew.
_SIGNS = "o+x*#@%&"
_SHADES = " .:-=+*#%@"
_MOST_ROWS = 24
_NO_BREAK = "\u00a0"


def as_text(chart: Chart) -> str:
    """The chart as lines of text."""
    if isinstance(chart, BarChart):
        return _bar_chart(chart)
    return _heat_map(chart) if isinstance(chart, HeatMap) else _line_chart(chart)


def axes_of(chart: LineChart) -> Tuple[Axis, Axis]:
    """The horizontal and the vertical axis. An x axis that is labelled in bytes is marked in KiB and MiB."""
    xs = [value for each in chart.series for value in each.x if math.isfinite(value) and (value > 0 or not chart.log_x)]
    ys = [value for each in chart.series for value in each.y]
    if chart.log_x and chart.x_label.endswith("bytes") and xs:
        return byte_axis(min(xs), max(xs)), axis_of(ys, chart.log_y)
    low, high = (min(xs), max(xs)) if xs else (0.0, 1.0)
    across = axis_of(xs, chart.log_x)
    # Data fill the whole width: only the marks are round numbers.
    if not chart.log_x and high > low:
        ticks = tuple(tick for tick in across.ticks if low <= tick[0] <= high)
        across = Axis(low, high, False, ticks)
    return across, axis_of(ys, chart.log_y)


def _line_chart(chart: LineChart) -> str:
    across, up = axes_of(chart)
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    for mark, _ in chart.marks:
        column = _cell(across.at(mark), _WIDTH)
        for line in grid:
            if column is not None:
                line[column] = "|"
    names = []
    for number, series in enumerate(chart.series):
        sign = "·" if series.style == "dashed" else _SIGNS[number % len(_SIGNS)]
        names.append(f"{sign} {one_line(series.name)}")
        for x, y in _points(series.x, series.y, across, up):
            grid[_HEIGHT - 1 - y][x] = sign
    lines = [f"{one_line(chart.title)} ({one_line(chart.y_label)})"[:78]]
    texts = {}
    for value, text in up.ticks:
        row = _cell(up.at(value), _HEIGHT)
        if row is not None:
            texts[row] = text
    for number, line in enumerate(grid):
        text = texts.get(_HEIGHT - 1 - number, "")
        lines.append(f"{text:>{_LABEL}} |{''.join(line).rstrip()}".rstrip())
    lines.append(" " * (_LABEL + 1) + "+" + "-" * _WIDTH)
    lines.append(_below(across, one_line(chart.x_label)))
    if len(chart.series) > 1 or chart.marks:
        names += [f"| {one_line(word)}" for _, word in chart.marks[:3]]
        lines.append((" " * (_LABEL + 2) + "   ".join(names))[:78])
    return "\n".join(lines)


def _points(xs: Sequence[float], ys: Sequence[float], across: Axis, up: Axis) -> List[Tuple[int, int]]:
    made = []
    for x, y in zip(xs, ys):
        column, row = _cell(across.at(x), _WIDTH), _cell(up.at(y), _HEIGHT)
        if column is not None and row is not None:
            made.append((column, row))
    return made


def _cell(share: float, count: int) -> Optional[int]:
    return (
        None if share != share or not -0.001 <= share <= 1.001 else min(count - 1, max(0, round(share * (count - 1))))
    )


def _below(across: Axis, label: str) -> str:
    low = bytes_text(across.low) if label.endswith("bytes") else f"{across.low:.6g}"
    high = bytes_text(across.high) if label.endswith("bytes") else f"{across.high:.6g}"
    middle = label[: _WIDTH - len(low) - len(high) - 2].center(_WIDTH - len(low) - len(high))
    return " " * (_LABEL + 2) + low + middle + high


def _heat_map(chart: HeatMap) -> str:
    finite = [cell for row in chart.cells for cell in row if cell is not None and math.isfinite(cell)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    width = min(24, max((len(name) for name in chart.rows), default=0))
    lines = [
        f"{one_line(chart.title)} ({one_line(chart.unit)}; '{_SHADES[1]}' {low:.3g} to '{_SHADES[-1]}' {high:.3g})"[:78]
    ]
    columns = thinned(len(chart.columns), 76 - width)
    for at in thinned(len(chart.rows), _MOST_ROWS):
        name = one_line(chart.rows[at])
        name = name if len(name) <= width else "…" + name[len(name) - width + 1 :]
        cells = chart.cells[at]
        signs = "".join(_shade(cells[column] if column < len(cells) else None, low, high) for column in columns)
        lines.append(f"{name:<{width}} {signs}".rstrip())
    if chart.columns:
        first, last = one_line(chart.columns[0]), one_line(chart.columns[-1])
        lines.append(" " * (width + 1) + first + last.rjust(max(1, len(columns) - len(first))))
    return "\n".join(lines)


def _bar_chart(chart: BarChart) -> str:
    totals = [sum(values) for values in chart.values]
    longest = max(totals, default=0.0)
    shown = [at for at in range(len(chart.parts)) if any(values[at] > 0 for values in chart.values)]
    signs = _part_signs([chart.parts[at] for at in shown])
    width = min(20, max((len(one_line(name)) for name in chart.rows), default=0))
    lines = [f"{one_line(chart.title)} (the longest is {longest:.3g} {one_line(chart.unit)})"[:78]]
    legend = [f"{sign} {one_line(chart.parts[at])}".replace(" ", _NO_BREAK) for sign, at in zip(signs, shown)]
    lines += textwrap.wrap("  ".join(legend), 76)
    for at in thinned(len(chart.rows), _MOST_ROWS):
        text, end = "", 0.0
        for sign, part in zip(signs, shown):
            # The ends are rounded, not the parts, so that the sum does not drift.
            end += chart.values[at][part] * _WIDTH / longest if longest else 0.0
            text += sign * (round(end) - len(text))
        lines.append(f"{one_line(chart.rows[at])[:width]:>{width}} |{text}")
    return "\n".join(lines).replace(_NO_BREAK, " ")


def _part_signs(parts: Sequence[str]) -> List[str]:
    """A letter of each name that no other has; a digit where all its letters are taken."""
    signs: List[str] = []
    for number, part in enumerate(parts):
        free = (letter for letter in part if letter.isascii() and letter.isalpha() and letter not in signs)
        signs.append(next(free, str(number % 10)))
    return signs


def _shade(cell: Optional[float], low: float, high: float) -> str:
    if cell is None:
        return " "
    if not math.isfinite(cell):
        return "N" if cell != cell else "I" if cell > 0 else "0"
    share = (cell - low) / (high - low) if high > low else 1.0
    return _SHADES[1 + round(share * (len(_SHADES) - 2))]
