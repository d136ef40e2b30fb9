"""One measurement of all-reduce from the wish to the report: what ``allreduce-bench`` calls."""

from __future__ import annotations

import dataclasses
import statistics
import sys
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from chainerdoctor import snapshot as snapshots
from chainerdoctor.facts import Fact
from chainerdoctor.facts.bandwidth import (
    BandwidthBefore,
    BandwidthFloor,
    BenchFinished,
    BenchLeftOut,
    BenchSetup,
    ModelSize,
    SettingTried,
)
from chainerdoctor.findings import Report
from chainerdoctor.judging import report_on
from chainerdoctor.launch.collect import LaunchError, Progress, gather
from chainerdoctor.launch.hosts import Slots
from chainerdoctor.launch.launchers import plan
from chainerdoctor.measured_bandwidth import rows_of
from chainerdoctor.report.bandwidth import curve_of, notes_of, tables_of
from chainerdoctor.rules import Rule, all_rules, selected
from chainerdoctor.snapshot import Sighting, Snapshot
from chainerdoctor.workloads.allreduce.plan import Plan

COMMAND = "allreduce-bench"
#: Rounds with and without a setting, in turn.
_COMPARISONS = 5


@dataclass(frozen=True)
class Demands:
    """What the result has to reach: GB/s of busbw from a size on, and a baseline with its tolerance."""

    min_busbw_gbs: Optional[float]
    floor_bytes: int
    baseline: Optional[str]
    tolerance: float


@dataclass(frozen=True)
class Measured:
    """What was measured, and what was made of it."""

    snapshot: Snapshot
    report: Report


def bench(
    wish: Plan,
    *,
    ranks: Optional[int],
    hosts: Tuple[Slots, ...],
    launcher: str,
    timeout_s: float,
    demands: Demands,
    settings: Tuple[Tuple[str, str], ...],
    compute_s: Optional[float],
    select: Tuple[str, ...],
    ignore: Tuple[str, ...],
    progress: Optional[Progress] = None,
) -> Measured:
    """Measure and judge.

    Raises:
        LaunchError, SnapshotError, SelectionError: the wish cannot be fulfilled; the text is one line.
    """
    rules = selected(bench_rules(), select, ignore)
    before = None if demands.baseline is None else snapshots.load(demands.baseline)
    seen = _run(wish, ranks, hosts, launcher, timeout_s, {}, progress)
    more: List[Fact] = []
    for name, value in settings:
        more += _compare(wish, ranks, hosts, launcher, timeout_s, name, value)
    if demands.min_busbw_gbs is not None:
        more.append(BandwidthFloor(demands.min_busbw_gbs, demands.floor_bytes))
    if before is not None:
        more += _rows_before(before, demands)
    sightings = [*seen.sightings, *(Sighting("", None, COMMAND, 0.0, 0.0, fact) for fact in more)]
    whole = Snapshot(sightings, command=COMMAND, taken_at=seen.taken_at, tool=seen.tool)
    report = report_on(whole, rules, COMMAND, checked(whole))
    size = model_bytes(whole)
    shown = dataclasses.replace(
        report,
        tables=tables_of(whole, size, compute_s),
        charts=curve_of(whole),
        notes=(*report.notes, *notes_of(whole)),
    )
    return Measured(whole, shown)


def bench_rules() -> Tuple[Rule, ...]:
    """The rules about measured bandwidth, and whether every rank reported."""
    return tuple(rule for rule in all_rules() if rule.code[:4] in ("CD60", "CD61") or rule.code in ("CD002", "CD003"))


def checked(snapshot: Snapshot) -> Tuple[Tuple[str, str], ...]:
    """(label, value) pairs that say what was measured with, for a report's head."""
    setups = [seen.fact for seen in snapshot.all(BenchSetup)]
    pairs = []
    if setups:
        nodes = {seen.node for seen in snapshot.all(BenchSetup)}
        first = setups[0]
        pairs.append(("looked at", f"{first.ranks} ranks on {len(nodes)} node{'s' if len(nodes) != 1 else ''}"))
        pairs.append(("backend", f"{first.backend} ({first.library})"))
        pairs.append(("thread level", first.thread_level))
        pairs.append(("dtype", first.dtype))
    finished = len(snapshot.all(BenchFinished))
    if setups and finished < setups[0].ranks:
        pairs.append(("PARTIAL:", f"{finished} of {setups[0].ranks} ranks finished"))
    return tuple(pairs)


def _run(
    wish: Plan,
    ranks: Optional[int],
    hosts: Tuple[Slots, ...],
    launcher: str,
    timeout_s: float,
    environ: Dict[str, str],
    progress: Optional[Progress] = None,
) -> Snapshot:
    module = "chainerdoctor.workloads.allreduce.rank"
    agent = (sys.executable, "-m", module, "--plan", wish.to_json(), "--deadline", f"{timeout_s:g}")
    launch = plan(launcher, ranks, hosts, agent)
    if not launch.launcher.startswith(("mpiexec", "srun")):
        raise LaunchError(
            "ranks have to be started by mpiexec or srun to sum anything; install an MPI (pip install mpich)"
        )
    if environ:
        launch = dataclasses.replace(launch, environments=tuple({**each, **environ} for each in launch.environments))
    return gather(launch, timeout_s, COMMAND, progress)


def _compare(
    wish: Plan,
    ranks: Optional[int],
    hosts: Tuple[Slots, ...],
    launcher: str,
    timeout_s: float,
    name: str,
    value: str,
) -> List[Fact]:
    """Runs with and without the variable in turn, A B B A …, so that a machine that drifts slows both alike."""
    short = dataclasses.replace(wish, sizes=wish.sizes[-3:], seconds=wish.seconds / 4, pairwise=False, check=False)
    ratios: Dict[int, List[float]] = {}
    for turn in range(_COMPARISONS):
        both: Dict[bool, Dict[int, float]] = {}
        for with_it in (turn % 2 == 0, turn % 2 == 1):
            seen = _run(short, ranks, hosts, launcher, timeout_s, {name: value} if with_it else {})
            both[with_it] = {row.size_bytes: row.median_s for row in rows_of(seen) if not row.in_place}
        for size, with_s in both[True].items():
            if size in both[False]:
                ratios.setdefault(size, []).append(with_s / both[False][size])
    if not ratios:
        return [BenchLeftOut(f"{name}={value}", "the runs with or without it gave no result")]
    # The range of five pairs holds the median with 1 − 2·0.5⁵ = 94 %.
    return [
        SettingTried(name, value, size, len(each), statistics.median(each), min(each), max(each))
        for size, each in sorted(ratios.items())
    ]


def _rows_before(before: Snapshot, demands: Demands) -> List[Fact]:
    rows = rows_of(before)
    if not rows:
        raise LaunchError(f"{demands.baseline}: holds no result of allreduce-bench (save one with --save)")
    return [
        BandwidthBefore(
            row.backend,
            row.dtype,
            row.size_bytes,
            row.in_place,
            row.ranks,
            row.busbw_gbs,
            demands.tolerance,
            demands.floor_bytes,
        )
        for row in rows
    ]


def sizes_between(least: int, most: int, factor: int) -> Tuple[int, ...]:
    """least, least·factor … up to and including most."""
    sizes = [least]
    while sizes[-1] * factor <= most:
        sizes.append(sizes[-1] * factor)
    if sizes[-1] != most:
        sizes.append(most)
    return tuple(sizes)


def model_bytes(snapshot: Snapshot) -> Optional[int]:
    """Bytes of the gradients of the model that was asked for, if a rank could make it."""
    told = [seen.fact for seen in snapshot.all(ModelSize)]
    return told[0].size_bytes if told else None
