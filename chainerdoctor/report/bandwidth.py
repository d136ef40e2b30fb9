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
from chainerdoctor.findings import Chart, LineChart, Series, Table
from chainerdoctor.measured_bandwidth import Row, fit_of, power, rows_of
from chainerdoctor.report.axes import bytes_text
from chainerdoctor.scaling import Fit, links_of, predictions
from chainerdoctor.snapshot import Snapshot

#: Points by which the fit is drawn.
_FIT_POINTS = 60
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
            f"{bytes_text(curve.knee_bytes)}, error {curve.error:.0%}."
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


def curve_of(snapshot: Snapshot) -> Tuple[Chart, ...]:
    """Bus bandwidth over size with its fit, both axes logarithmic; nothing with fewer than three sizes."""
    rows = [row for row in rows_of(snapshot) if not row.in_place and row.busbw_gbs > 0]
    if len(rows) < 3:
        return ()
    measured = Series(
        "measured", tuple(float(row.size_bytes) for row in rows), tuple(row.busbw_gbs for row in rows), "points"
    )
    series = [measured]
    curve = fit_of(rows)
    if curve is not None:
        factor = 2 * (rows[0].ranks - 1) / rows[0].ranks
        low, high = math.log2(rows[0].size_bytes), math.log2(rows[-1].size_bytes)
        sizes = tuple(2 ** (low + (high - low) * at / (_FIT_POINTS - 1)) for at in range(_FIT_POINTS))
        series.insert(
            0, Series("fit", sizes, tuple(size / curve.time_s(size) / 1e9 * factor for size in sizes), "dashed")
        )
    return (LineChart("Bus bandwidth", "size in bytes", "busbw GB/s", tuple(series), log_x=True, log_y=True),)
