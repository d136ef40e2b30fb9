"""Charts: the ends of their axes, where points land, and what a bar's length means."""

import math
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reports import measured

from chainerdoctor.findings import BarChart, HeatMap, LineChart, Series
from chainerdoctor.report.axes import axis_of, byte_axis, thinned
from chainerdoctor.report.svg import as_svg, colour_of
from chainerdoctor.report.text_chart import as_text

numbers = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(st.lists(numbers, max_size=30), st.booleans())
def test_an_axis_holds_its_values_and_marks_some_of_it(values, log) -> None:
    axis = axis_of(values, log)
    for value in values:
        if (1e-300 if log else -1e300) <= value <= 1e300:
            assert -1e-9 <= axis.at(value) <= 1 + 1e-9
    assert axis.ticks
    assert all(first[0] < second[0] for first, second in zip(axis.ticks, axis.ticks[1:]))


@given(st.lists(numbers, max_size=30), st.booleans(), st.booleans())
def test_any_numbers_can_be_drawn(values, log_x, log_y) -> None:
    series = Series("norm", tuple(range(len(values))), tuple(values))
    chart = LineChart("Title", "iteration", "norm", (series,), log_x, log_y)
    ET.fromstring(as_svg(chart))
    assert all(len(line) <= 78 for line in as_text(chart).splitlines())


@given(st.lists(st.lists(st.floats(0, 1e12), min_size=3, max_size=3), max_size=5))
def test_bars_are_as_long_as_their_parts(values) -> None:
    rows = tuple(f"rank {place}" for place in range(len(values)))
    chart = BarChart("Iteration", rows, ("forward", "backward", "waiting"), tuple(map(tuple, values)), "ms")
    longest = max(map(sum, values), default=0.0)
    lines = [line.partition("|")[2] for line in as_text(chart).splitlines() if line.startswith("rank")]
    assert len(lines) == len(values)
    for line, parts in zip(lines, values):
        if longest > 0:
            assert abs(len(line) - 60 * sum(parts) / longest) <= 0.51
    ET.fromstring(as_svg(chart))


def test_charts_in_text_keep_78_columns() -> None:
    for chart in measured().charts:
        assert all(len(line) <= 78 for line in as_text(chart).splitlines())


def test_a_falling_line_falls() -> None:
    rows = as_text(LineChart("t", "x", "y", (Series("s", (0, 1, 2), (2, 1, 0)),))).splitlines()
    at = [row.index("o") for row in rows if "o" in row.partition("|")[2]]
    assert at == sorted(at)
    assert len(at) == 3


def test_a_gap_interrupts_the_line() -> None:
    chart = LineChart("t", "x", "y", (Series("s", (0, 1, 2, 3, 4), (1.0, 2.0, math.nan, 2.0, 1.0)),))
    assert as_svg(chart).count("<polyline") == 2


def test_what_is_not_a_number_is_told_apart_in_a_heat_map() -> None:
    chart = HeatMap("t", ("a",), ("1", "2", "3", "4"), ((math.nan, math.inf, -math.inf, None),), "log10")
    assert as_text(chart).splitlines()[1].startswith("a NI0")
    classes = re.findall('class="(broken|zero|unseen)"', as_svg(chart))
    assert classes == ["broken", "broken", "zero", "unseen"]


def test_byte_axes_are_marked_in_powers_of_two() -> None:
    axis = byte_axis(4, 64 * 2**20)
    assert all(math.log2(value) == int(math.log2(value)) for value, _ in axis.ticks)


@pytest.mark.parametrize(("count", "most"), [(0, 5), (3, 5), (5, 5), (1000, 7)])
def test_thinning_keeps_both_ends(count: int, most: int) -> None:
    kept = list(thinned(count, most))
    assert len(kept) == min(count, most)
    if count:
        assert kept[0] == 0
        assert kept[-1] == count - 1


def test_colours_grow_steadily_lighter() -> None:
    def lightness(colour: str) -> float:  # relative luminance (WCAG 2.1)
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    steps = [lightness(colour_of(number / 20)) for number in range(21)]
    assert steps == sorted(steps)
    assert steps[0] < 0.05 < 0.7 < steps[-1]
