"""Tables and the curve of ``allreduce-bench``, out of the facts."""

from __future__ import annotations

import math
from typing import List, Optional, Sequence, Tuple

from chainerdoctor.facts.bandwidth import (
    BenchSetup,
    GradientPhases,
    PairTiming,
    SettingTried,
)
from chainerdoctor.findings import Table
from chainerdoctor.measured_bandwidth import Row, fit_of, power, rows_of
from chainerdoctor.scaling import Fit, links_of, predictions
from chainerdoctor.snapshot import Snapshot

_WIDTH, _HEIGHT = 60, 12
#: Numbers of ranks for which a prediction is made.
COUNTS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


def tables_of(snapshot: Snapshot, gradient_bytes: Optional[int], compute_s: Optional[float]) -> Tuple[Table, ...]:
    """Everything that was measured, and what it means for a model of so many bytes of gradients."""
    rows = rows_of(snapshot)
    made = []
    if rows:
        kinds = sorted({row.in_place for row in rows})
        made += [*(_sweep(rows, in_place) for in_place in kinds), _spread(rows)]
    made += _phases(snapshot)
    made += _settings(snapshot)
    curve = fit_of(rows)
    if curve is not None and gradient_bytes is not None and rows[0].ranks > 1:
        made.append(_scaling(curve, rows[0].ranks, gradient_bytes, compute_s))
    return tuple(made)


def _sweep(rows: Sequence[Row], in_place: bool) -> Table:
    columns = ("size B", "count", "type", "redop", "time us", "algbw", "busbw", "#wrong")
    lines = tuple(_cells(row) for row in rows if row.in_place is in_place)
    title = f"All-reduce {'in place' if in_place else 'out of place'}, {rows[0].ranks} ranks (GB/s)"
    return Table(title, columns, lines)


def _cells(row: Row) -> Tuple[str, ...]:
    wrong = "n/a" if row.wrong is None else str(row.wrong)
    # A row that not every rank told is marked.
    time = f"{row.median_s * 1e6:.1f}{'*' if row.told < row.ranks else ''}"
    head = (str(row.size_bytes), str(row.count), row.dtype, "sum", time)
    return (*head, f"{row.algbw_gbs:.3f}", f"{row.busbw_gbs:.3f}", wrong)


def _spread(rows: Sequence[Row]) -> Table:
    lines = [
        (
            str(row.size_bytes),
            str(row.repeats),
            *(f"{value * 1e6:.1f}" for value in (row.min_s, row.median_s, row.p95_s, row.max_s)),
            f"{row.variation:.0%}",
            str(row.slowest_rank),
        )
        for row in rows
        if not row.in_place or len(rows) == 1
    ]
    columns = ("size B", "repeats", "min us", "median", "p95", "max", "variation", "slowest")
    return Table("Spread over calls and ranks", columns, tuple(lines))


def _phases(snapshot: Snapshot) -> List[Table]:
    told = [seen.fact for seen in snapshot.all(GradientPhases)]
    if not told:
        return []
    slowest = max(told, key=lambda fact: fact.pack_s + fact.allreduce_s + fact.unpack_s)
    parts = (("pack", slowest.pack_s), ("all-reduce and the rest", slowest.allreduce_s), ("unpack", slowest.unpack_s))
    total = sum(seconds for _, seconds in parts) or 1.0
    lines = tuple((name, f"{seconds * 1e3:.2f}", f"{seconds / total:.0%}") for name, seconds in parts)
    title = (
        f"{slowest.backend} on {slowest.model}: {slowest.parameters:,} parameters, {slowest.size_bytes / 1e6:.1f} MB"
    )
    return [Table(title, ("part", "ms", "share"), lines)]


def _settings(snapshot: Snapshot) -> List[Table]:
    lines = tuple(
        (f"{fact.name}={fact.value}", str(fact.size_bytes), f"{fact.ratio:.2f}", f"{fact.low:.2f}–{fact.high:.2f}")
        for fact in (seen.fact for seen in snapshot.all(SettingTried))
    )
    return (
        [Table("Time with a setting over time without", ("setting", "size B", "ratio", "range"), lines)]
        if lines
        else []
    )


def _scaling(curve: Fit, ranks: int, gradient_bytes: int, compute_s: Optional[float]) -> Table:
    link = links_of(curve, ranks)
    lines = []
    for row in predictions(gradient_bytes, compute_s, link, COUNTS):
        share = f"{row['efficiency']:.1%}" if "efficiency" in row else "-"
        lines.append((str(int(row["ranks"])), f"{row['exchange_s'] * 1e3:.2f}", share))
    title = (
        f"Predicted exchange of {gradient_bytes / 1e6:.1f} MB of gradients: 2(n-1)·α + 2(n-1)/n·S/β with "
        f"α = {link.latency_s * 1e6:.1f} us, β = {link.bandwidth_gbs:.2f} GB/s (a ring of links like these)"
    )
    return Table(title, ("ranks", "exchange ms", "efficiency"), tuple(lines))


def notes_of(snapshot: Snapshot) -> Tuple[str, ...]:
    """Sentences under the tables: the fit, the expectation, and how much a slow link would have to be slow."""
    rows = rows_of(snapshot)
    notes = []
    curve = fit_of(rows)
    if curve is not None:
        notes.append(
            f"Fit: {curve.latency_s * 1e6:.1f} us + size / {curve.bandwidth_gbs:.2f} GB/s, knee at "
            f"{_bytes(curve.knee_bytes)}, error {curve.error:.0%}."
        )
    copies = [seen.fact.copy_gbs for seen in snapshot.all(BenchSetup) if seen.fact.copy_gbs is not None]
    if copies and rows:
        best = max(row.busbw_gbs for row in rows)
        notes.append(
            f"Best busbw {best:.2f} GB/s, {best / min(copies):.0%} of a memory copy on the slowest rank "
            f"({min(copies):.2f} GB/s)."
        )
    if 0 < len(snapshot.all(PairTiming)) < 3:
        notes.append("Fewer than three pairs: nobody can be called slow among them.")
    elif snapshot.all(PairTiming):
        told = [
            f"{slower:g}x slow: {chance:.0%}"
            for slower in (1.2, 2.0, 10.0)
            if (chance := power(snapshot, slower)) is not None
        ]
        if told:
            notes.append(f"With this run's noise a slow link would be found with these chances: {', '.join(told)}.")
    return tuple(notes)


def curve_of(snapshot: Snapshot) -> Tuple[str, ...]:
    """Bus bandwidth over size, both logarithmic, as lines of text; nothing with fewer than three sizes."""
    rows = [row for row in rows_of(snapshot) if not row.in_place and row.busbw_gbs > 0]
    if len(rows) < 3:
        return ()
    xs = [math.log2(row.size_bytes) for row in rows]
    ys = [math.log10(row.busbw_gbs) for row in rows]
    low, high = math.floor(min(ys)), math.ceil(max(ys))
    high = max(high, low + 1)
    grid = [[" "] * _WIDTH for _ in range(_HEIGHT)]
    curve = fit_of(rows)
    factor = 2 * (rows[0].ranks - 1) / rows[0].ranks
    for column in range(_WIDTH):
        size = 2 ** (xs[0] + (xs[-1] - xs[0]) * column / (_WIDTH - 1))
        if curve is not None:
            _dot(grid, column, math.log10(size / curve.time_s(size) / 1e9 * factor), low, high, "·")
    for x, y in zip(xs, ys):
        _dot(grid, round((x - xs[0]) / (xs[-1] - xs[0]) * (_WIDTH - 1)), y, low, high, "o")
    lines = ["busbw GB/s, o measured, · fit"]
    for number, line in enumerate(grid):
        level = high - (high - low) * number / (_HEIGHT - 1)
        label = f"{10**level:8.3g}" if number % 3 == 0 or number == _HEIGHT - 1 else " " * 8
        lines.append(f"{label} |{''.join(line).rstrip()}")
    first, last = _bytes(rows[0].size_bytes), _bytes(rows[-1].size_bytes)
    lines += [" " * 9 + "+" + "-" * _WIDTH, " " * 10 + first + last.rjust(_WIDTH - len(first))]
    return ("\n".join(lines),)


def _dot(grid: List[List[str]], column: int, y: float, low: int, high: int, sign: str) -> None:
    line = round((high - y) / (high - low) * (_HEIGHT - 1))
    if 0 <= line < _HEIGHT:
        grid[line][column] = sign


def _bytes(size: float) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{size / unit:.4g} {name}"
    return f"{size:.4g} B"
