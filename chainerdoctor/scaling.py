"""Bandwidths, the latency-bandwidth model of a link, and what it means for training. Pure arithmetic.

Formulas: busbw = algbw · 2(n−1)/n for all-reduce (nccl-tests, doc/PERFORMANCE.md); ring all-reduce of S bytes takes
2(n−1)·α + 2(n−1)/n·S/β, a hierarchical one the sum of a ring within nodes and one between them over S divided by the
ranks of a node (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication Operations in MPICH", 2005).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Dict, List, Optional, Sequence, Tuple


def algbw_gbs(size_bytes: int, took_s: float) -> float:
    """Bytes of one rank's buffer over the time, in GB/s."""
    return size_bytes / took_s / 1e9 if took_s > 0 else 0.0


def busbw_gbs(size_bytes: int, took_s: float, ranks: int) -> float:
    """What crosses the narrowest link, in GB/s; for one rank nothing crosses any."""
    return algbw_gbs(size_bytes, took_s) * 2 * (ranks - 1) / ranks


@dataclass(frozen=True)
class Fit:
    """time = latency + size/bandwidth. ``knee_bytes`` is the size at which both parts are equal; ``error`` the root
    mean square of the relative errors."""

    latency_s: float
    bandwidth_gbs: float
    knee_bytes: float
    error: float

    def time_s(self, size_bytes: float) -> float:
        """The model's time for a size."""
        return self.latency_s + size_bytes / (self.bandwidth_gbs * 1e9)


def fit(points: Sequence[Tuple[int, float]]) -> Optional[Fit]:
    """Least squares over relative errors through (bytes, seconds); ``None`` with fewer than three different sizes.

    Relative errors, since times span five orders of magnitude and the small ones carry the latency.
    """
    if len({size for size, _ in points}) < 3:
        return None
    # Minimise Σ((a + b·s − t)/t)²: weights 1/t² in ordinary least squares.
    sw = sum(1 / t**2 for _, t in points)
    ss = sum(s / t**2 for s, t in points)
    sss = sum(s * s / t**2 for s, t in points)
    st = sum(1 / t for _, t in points)
    sst = sum(s / t for s, t in points)
    determinant = sw * sss - ss * ss
    if determinant <= 0:
        return None
    a = (st * sss - ss * sst) / determinant
    b = (sw * sst - ss * st) / determinant
    if b <= 0:
        return None
    a = max(a, 1e-9)
    error = math.sqrt(sum(((a + b * s - t) / t) ** 2 for s, t in points) / len(points))
    return Fit(a, 1 / b / 1e9, a / b, error)


@dataclass(frozen=True)
class Link:
    """A kind of link: seconds a message costs at least, and GB/s of one direction."""

    latency_s: float
    bandwidth_gbs: float


def ring_s(size_bytes: float, ranks: int, link: Link) -> float:
    """Seconds of a ring all-reduce among ``ranks`` over equal links."""
    if ranks < 2:
        return 0.0
    steps = 2 * (ranks - 1)
    return steps * link.latency_s + steps / ranks * size_bytes / (link.bandwidth_gbs * 1e9)


def hierarchical_s(size_bytes: float, nodes: int, per_node: int, within: Link, between: Link) -> float:
    """Seconds of an all-reduce that sums within nodes, then between them a share for each rank of a node."""
    return ring_s(size_bytes, per_node, within) + ring_s(size_bytes / per_node, nodes, between)


def links_of(measured: Fit, ranks: int) -> Link:
    """The link that makes a ring of so many ranks take what was measured."""
    steps = 2 * (ranks - 1)
    return Link(measured.latency_s / steps, measured.bandwidth_gbs * steps / ranks)


def efficiency(compute_s: float, exchange_s: float) -> float:
    """Share of a step that computes when the exchange is not hidden behind it."""
    return compute_s / (compute_s + exchange_s)


def predictions(
    gradient_bytes: int, compute_s: Optional[float], link: Link, counts: Sequence[int]
) -> List[Dict[str, float]]:
    """For each number of ranks the exchange's seconds, and the efficiency if the compute time is known."""
    rows = []
    for ranks in counts:
        exchange = ring_s(gradient_bytes, ranks, link)
        row: Dict[str, float] = {"ranks": ranks, "exchange_s": exchange}
        if compute_s is not None:
            row["efficiency"] = efficiency(compute_s, exchange)
        rows.append(row)
    return rows
