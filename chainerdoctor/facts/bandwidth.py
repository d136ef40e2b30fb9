"""What ``allreduce-bench`` measured. Sizes are bytes of one rank's buffer, times seconds, bandwidths GB/s (10^9 B/s)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class BenchSetup(Fact):
    """What one rank measured with. ``library`` is MPI's or NCCL's name and version, ``thread_level`` MPI's level, which
    changes MPICH's path; ``processors`` are those that this rank's node lets it use. ``copy_gbs`` is the best memory copy
    on this rank's processor, of ``copy_bytes``."""

    backend: str
    library: str
    ranks: int
    dtype: str
    thread_level: str
    device: Optional[int]
    copy_bytes: int
    copy_gbs: Optional[float]
    processors: Optional[int] = None


@dataclass(frozen=True)
class AllreduceTiming(Fact):
    """All-reduces (sums) of one size on one rank: the quantiles of ``repeats`` timed calls, after ``warmup`` calls the
    first of which took ``first_s``. ``variation`` is standard deviation over mean. ``wrong`` elements differ from the
    exact sum by more than ``bound`` (absolute; 0 where the sum is exact), the first at ``wrong_at``; ``None`` if unchecked."""

    backend: str
    dtype: str
    size_bytes: int
    count: int
    in_place: bool
    repeats: int
    warmup: int
    first_s: float
    min_s: float
    median_s: float
    p95_s: float
    max_s: float
    variation: float
    wrong: Optional[int]
    wrong_at: Optional[int]
    bound: float


@dataclass(frozen=True)
class GradientPhases(Fact):
    """Median seconds of the parts of ChainerMN's ``multi_node_mean_grad`` on a model's gradients."""

    backend: str
    model: str
    parameters: int
    size_bytes: int
    pack_s: float
    allreduce_s: float
    unpack_s: float


@dataclass(frozen=True)
class ModelSize(Fact):
    """Elements and bytes of a model's gradients, as rank 0 made it."""

    model: str
    parameters: int
    size_bytes: int


@dataclass(frozen=True)
class PairTiming(Fact):
    """Messages both ways between this rank and ``other``. ``best_s`` is the best over all passes; ``passes_s`` are the
    bests of each pass (the first among other pairs, the later ones alone), ``noise`` samples over their own median."""

    rank: int
    other: int
    size_bytes: int
    best_s: float
    passes_s: Tuple[float, ...]
    noise: Tuple[float, ...]


@dataclass(frozen=True)
class Waiting(Fact):
    """How long this rank waited in ``rounds`` small all-reduces that followed equal work of ``work_s`` (median), and in
    how many it waited least of all: who waits least came last. No clocks are compared."""

    rank: int
    rounds: int
    wait_s: float
    work_s: float
    came_last: int


@dataclass(frozen=True)
class BenchLeftOut(Fact):
    """Something that was asked for and not measured, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class BenchFinished(Fact):
    """This rank did everything that was asked."""

    sizes: int


@dataclass(frozen=True)
class BandwidthFloor(Fact):
    """What the caller demands: a bus bandwidth at every size from ``from_bytes`` on."""

    busbw_gbs: float
    from_bytes: int


@dataclass(frozen=True)
class BandwidthBefore(Fact):
    """A row of the baseline, and how much less is tolerated (0.1: a tenth)."""

    backend: str
    dtype: str
    size_bytes: int
    in_place: bool
    ranks: int
    busbw_gbs: float
    tolerance: float
    from_bytes: int


@dataclass(frozen=True)
class SettingTried(Fact):
    """The same all-reduces with and without an environment variable, in turn: ratios of times with it over without
    (median, and the interval that holds it with 95 %). Below 1 the setting helps."""

    name: str
    value: str
    size_bytes: int
    pairs: int
    ratio: float
    low: float
    high: float
