"""Charts as SVG, with colours from the page's CSS variables so that they follow light and dark."""

from __future__ import annotations

import math
from html import escape
from typing import Iterator, List, Optional, Sequence, Tuple

from chainerdoctor.findings import BarChart, Chart, HeatMap, LineChart, Series
from chainerdoctor.report.axes import Axis, axis_of, thinned
from chainerdoctor.report.plain import one_line
from chainerdoctor.report.text_chart import axes_of

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 12, 44
#: Points that a line is drawn with; more cannot be told apart.
_MOST_POINTS = 1000
_MOST_ROWS, _MOST_COLUMNS, _CELL = 80, 120, 14
#: Number of colours that the page defines as --series-0 …
SERIES_COLOURS = 8


def as_svg(chart: Chart) -> str:
    """One ``<svg>`` element; scales to the width that it is given."""
    if isinstance(chart, BarChart):
        return _bar_chart(chart)
    return _heat_map(chart) if isinstance(chart, HeatMap) else _line_chart(chart)


def text_of(text: str) -> str:
    """Text from elsewhere as it may stand in SVG and HTML."""
    return escape(one_line(text), quote=True)


def _open(width: float, height: float, title: str) -> str:
    name = text_of(title)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{name}">'
        f"<title>{name}</title>"
    )


def _label(x: float, y: float, text: str, anchor: str = "middle", more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="tick"{more}>{text_of(text)}</text>'


def _line_chart(chart: LineChart) -> str:
    across, up = axes_of(chart)
    parts = [_open(_WIDTH, _HEIGHT + _legend_height(len(chart.series)), chart.title)]
    parts += _grid(across, up)
    parts.append(_label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, chart.x_label))
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts.append(_label(12, middle, chart.y_label, more=f' transform="rotate(-90 12 {middle:.1f})"'))
    for mark, word in chart.marks:
        x = _x(across, mark)
        if x == x:
            parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" class="mark"/>')
            side, anchor = (-5, "end") if x > _WIDTH / 2 else (5, "start")
            parts.append(_label(x + side, _TOP + 10, word, anchor))
    for number, series in enumerate(chart.series):
        parts += _series(series, number % SERIES_COLOURS, across, up)
    parts += _legend([each.name for each in chart.series], _HEIGHT)
    return "".join([*parts, "</svg>"])


def _x(across: Axis, value: float) -> float:
    return _LEFT + across.at(value) * (_WIDTH - _LEFT - _RIGHT)


def _y(up: Axis, value: float) -> float:
    return _HEIGHT - _BOTTOM - up.at(value) * (_HEIGHT - _TOP - _BOTTOM)


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for value, text in up.ticks:
        y = _y(up, value)
        yield f'<line x1="{_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>'
        yield _label(_LEFT - 6, y + 4, text, "end")
    for value, text in across.ticks:
        x = _x(across, value)
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" class="axis"/>'
        yield _label(x, bottom + 18, text)
    yield f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" class="axis"/>'


def _series(series: Series, colour: int, across: Axis, up: Axis) -> Iterator[str]:
    runs = _runs(series, across, up)
    style = f'style="--colour:var(--series-{colour})"'
    if series.style != "points":
        kind = "line dashed" if series.style == "dashed" else "line"
        for run in runs:
            points = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in run)
            yield f'<polyline points="{points}" class="{kind}" {style}/>'
    shown = [point for run in runs for point in run]
    if series.style == "points" or len(shown) <= 40:
        for x, y, (value, level) in shown:
            if series.style != "dashed":
                title = f"{one_line(series.name)}: {value:.6g}, {level:.6g}"
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" class="point" {style}><title>{text_of(title)}</title></circle>'


_Point = Tuple[float, float, Tuple[float, float]]


def _runs(series: Series, across: Axis, up: Axis) -> List[List[_Point]]:
    """The line in pieces: what is not on the axes interrupts it."""
    runs: List[List[_Point]] = [[]]
    for at in thinned(len(series.x), _MOST_POINTS):
        x, y = _x(across, series.x[at]), _y(up, series.y[at])
        if math.isfinite(x) and math.isfinite(y):
            runs[-1].append((x, y, (series.x[at], series.y[at])))
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def _legend_height(names: int) -> int:
    return 20 * -(-names // 3) if names > 1 else 0


def _legend(names: Sequence[str], top: float) -> Iterator[str]:
    """Three names a line; one alone needs none."""
    for number, text in enumerate(names if len(names) > 1 else ()):
        x, y = _LEFT + (number % 3) * 215, top + 12 + 20 * (number // 3)
        colour = f"var(--series-{number % SERIES_COLOURS})"
        yield f'<rect x="{x}" y="{y - 8}" width="12" height="8" style="fill:{colour}"/>'
        name = one_line(text)
        yield _label(x + 18, y, name if len(name) <= 30 else name[:29] + "…", "start")


def _bar_chart(chart: BarChart) -> str:
    rows = thinned(len(chart.rows), _MOST_ROWS)
    longest = max((sum(values) for values in chart.values), default=0.0)
    across = axis_of([0.0, longest], log=False)
    left = 12 + 6.4 * min(28, max((len(one_line(name)) for name in chart.rows), default=0))
    scale = (_WIDTH - left - _RIGHT) / (longest or 1.0)
    bottom = 8 + 22 * len(rows)
    shown = [at for at in range(len(chart.parts)) if any(values[at] > 0 for values in chart.values)]
    parts = [_open(_WIDTH, bottom + 44 + _legend_height(len(shown)), chart.title)]
    for line, at in enumerate(rows):
        y, x = 8 + 22 * line, left
        parts.append(_label(left - 6, y + 13, one_line(chart.rows[at])[:28], "end"))
        for number, part in enumerate(shown):
            value = chart.values[at][part]
            title = text_of(f"{chart.rows[at]}, {chart.parts[part]}: {value:.4g} {chart.unit}")
            box = f'x="{x:.1f}" y="{y}" width="{value * scale:.1f}" height="17"'
            colour = f"fill:var(--series-{number % SERIES_COLOURS})"
            parts.append(f'<rect {box} style="{colour}"><title>{title}</title></rect>')
            x += value * scale
    for value, text in across.ticks:
        if 0 <= value <= longest:
            parts.append(_label(left + value * scale, bottom + 14, text))
    parts.append(_label((left + _WIDTH - _RIGHT) / 2, bottom + 30, chart.unit))
    parts += _legend([chart.parts[at] for at in shown], bottom + 32)
    return "".join([*parts, "</svg>"])


def _heat_map(chart: HeatMap) -> str:
    rows, columns = thinned(len(chart.rows), _MOST_ROWS), thinned(len(chart.columns), _MOST_COLUMNS)
    finite = [cell for row in chart.cells for cell in row if cell is not None and math.isfinite(cell)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    left = 12 + 6.4 * min(28, max((len(one_line(name)) for name in chart.rows), default=0))
    wide = max(3.0, min(28.0, (_WIDTH - left - _RIGHT) / max(1, len(columns))))
    bottom = 8 + _CELL * len(rows)
    parts = [_open(_WIDTH, bottom + 46, chart.title)]
    for line, at in enumerate(rows):
        y = 8 + _CELL * line
        name = one_line(chart.rows[at])
        parts.append(_label(left - 6, y + _CELL - 4, name if len(name) <= 28 else "…" + name[-27:], "end"))
        for place, column in enumerate(columns):
            cell = chart.cells[at][column] if column < len(chart.cells[at]) else None
            title = f"{chart.rows[at]}, {chart.columns[column]}: {'not seen' if cell is None else f'{cell:.4g}'}"
            parts.append(_cell(left + wide * place, y, wide, cell, low, high, title))
    for place in thinned(len(columns), 8):
        parts.append(_label(left + wide * (place + 0.5), bottom + 14, chart.columns[columns[place]]))
    parts += _scale(left, bottom + 22, low, high, chart.unit)
    return "".join([*parts, "</svg>"])


def _cell(x: float, y: float, wide: float, cell: Optional[float], low: float, high: float, title: str) -> str:
    if cell is None:
        look = 'class="unseen"'
    elif not math.isfinite(cell) and cell < 0:
        look = 'class="zero"'
    elif not math.isfinite(cell):
        look = 'class="broken"'
    else:
        look = f'style="fill:{colour_of((cell - low) / (high - low) if high > low else 0.5)}"'
    box = f'x="{x:.1f}" y="{y}" width="{wide + 0.3:.1f}" height="{_CELL}"'
    return f"<rect {box} {look}><title>{text_of(title)}</title></rect>"


def _scale(x: float, y: float, low: float, high: float, unit: str) -> Iterator[str]:
    for number in range(40):
        yield f'<rect x="{x + 4 * number:.1f}" y="{y}" width="4.3" height="8" style="fill:{colour_of(number / 39)}"/>'
    yield _label(x, y + 20, f"{low:.3g}", "start")
    yield _label(x + 160, y + 20, f"{high:.3g}", "end")
    yield _label(x + 170, y + 8, unit, "start")


#: Corners of a scale from dark blue over green to yellow: its lightness grows steadily, which also prints in grey.
_SCALE: Sequence[Tuple[int, int, int]] = ((48, 18, 84), (59, 82, 139), (33, 144, 141), (93, 201, 99), (253, 231, 37))


def colour_of(share: float) -> str:
    """The colour at 0 … 1 of the scale."""
    place = min(1.0, max(0.0, share)) * (len(_SCALE) - 1)
    at = min(int(place), len(_SCALE) - 2)
    parts = (round(one + (other - one) * (place - at)) for one, other in zip(_SCALE[at], _SCALE[at + 1]))
    return "#" + "".join(f"{part:02x}" for part in parts)
