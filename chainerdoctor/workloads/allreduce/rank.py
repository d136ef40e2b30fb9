"""One rank of ``allreduce-bench``: ``python -m chainerdoctor.workloads.allreduce.rank --plan JSON --deadline S``.

Results are handed in size by size as frames on standard output, as the agent of check-cluster does: what was measured
before a rank is lost is kept.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any, Iterator, List, Optional, Tuple

from chainerdoctor.adapters import mpi as mpi_adapter
from chainerdoctor.facts import Fact
from chainerdoctor.facts.bandwidth import (
    AllreduceTiming,
    BenchFinished,
    BenchLeftOut,
    BenchSetup,
    GradientPhases,
    ModelSize,
)
from chainerdoctor.facts.host import HostMemory
from chainerdoctor.host import LiveHost
from chainerdoctor.launch.agent import Sender, write_frames
from chainerdoctor.launch.identity import identity
from chainerdoctor.launch.shelter import end_through_c
from chainerdoctor.launch.witness import witnessed
from chainerdoctor.probes.machine import memory
from chainerdoctor.snapshot import Sighting, sighting_to_json
from chainerdoctor.workloads.allreduce import checking, pairs, timing
from chainerdoctor.workloads.allreduce.backends import MpiBackend, NcclBackend, RefusedError, together
from chainerdoctor.workloads.allreduce.gradients import ChainermnBackend, gradient_bytes, load_model
from chainerdoctor.workloads.allreduce.plan import Plan

#: Buffers of one size in use at once: given, taken, a copy of each, the expected sum in float64.
_BUFFERS = 6


def main(arguments: Optional[List[str]] = None) -> int:
    """Entry point of a rank."""
    parser = argparse.ArgumentParser(prog="chainerdoctor.workloads.allreduce.rank")
    parser.add_argument("--plan", required=True)
    parser.add_argument("--deadline", type=float, required=True, help="end by then, in seconds from now")
    options = parser.parse_args(arguments)
    until_s = time.monotonic() + options.deadline
    plan = Plan.from_json(options.plan)
    host = LiveHost()
    told = identity(host.environ)
    rank = 0 if told is None else told.rank

    def run() -> bool:
        # Standard output belongs to the frames; what libraries print goes to standard error.
        out = os.dup(1)
        os.dup2(2, 1)
        sender = Sender(rank, lambda lines: write_frames(lines, out))
        node = os.uname().nodename
        sender.send({"hello": {"node": node, "boot": "", "size": 1 if told is None else told.size}})
        local_rank = rank if told is None or told.local_rank is None else told.local_rank
        for name, fact in measure(plan, local_rank, sender):
            seen = Sighting(node, rank, name, time.time(), 0.0, fact)
            sender.send({"sightings": [sighting_to_json(seen)]})
        sender.send({"final": True})
        write_frames(sender.sent[::-1], out)
        os.close(out)
        end_through_c()
        return True

    return witnessed(run, rank, until_s)


def measure(plan: Plan, local_rank: int, sender: Sender) -> Iterator[Tuple[str, Fact]]:
    """(what was done, fact) in the order of the plan."""
    try:
        import numpy

        joined, finalise = mpi_adapter.join_world()
    except (ImportError, RuntimeError) as error:
        yield "start", BenchLeftOut("everything", f"{type(error).__name__}: {str(error).splitlines()[0]}")
        return
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    done = 0
    try:
        if plan.backend.startswith("chainermn"):
            yield from _gradients(plan, MPI, world, local_rank, joined.thread_level)
            done = 1
        else:
            backend = _summing(plan, MPI, world, local_rank)
            copy_bytes = min(max(plan.sizes), 64 * 2**20)
            copy_gbs = _copy_gbs(numpy, copy_bytes)
            setup = BenchSetup(
                backend.name,
                backend.library,
                world.Get_size(),
                plan.dtype,
                joined.thread_level,
                backend.device,
                copy_bytes,
                copy_gbs,
                LiveHost().usable_processors(),
            )
            yield "start", setup
            for size in plan.sizes:
                for in_place in (False, True):
                    what = f"{size} bytes{', in place' if in_place else ''}"
                    fact = _one_size(plan, backend, numpy, world, size, in_place)
                    yield what, fact
                done += 1
                if world.Get_rank() == 0:
                    sender.send({"progress": [done, len(plan.sizes)]})
    except RefusedError as error:
        yield "start", BenchLeftOut(plan.backend, str(error))
    if plan.model is not None and world.Get_rank() == 0:
        try:
            yield "model", ModelSize(plan.model, *gradient_bytes(load_model(plan.model)))
        except RefusedError as error:
            yield "model", BenchLeftOut(f"the model {plan.model}", str(error))
    if plan.pairwise and world.Get_size() > 1:
        for fact in pairs.pair_timings(world, pairs.exchange):
            yield "pairs", fact
        yield "waiting", pairs.waiting(MPI, world, pairs.work)
    yield "end", BenchFinished(done)
    finalise()


def _summing(plan: Plan, mpi: Any, world: Any, local_rank: int) -> Any:
    """The backend of the plan; ``auto`` is NCCL where every rank can have it, else MPI."""
    backend = None
    if plan.backend in ("auto", "nccl"):
        try:
            backend = together(world, lambda: NcclBackend(world, plan.dtype, local_rank))
        except RefusedError:
            if plan.backend == "nccl":
                raise
    if backend is None:
        backend = together(world, lambda: MpiBackend(mpi, world, plan.dtype))
    backend.connect()
    return backend


def _one_size(plan: Plan, backend: Any, numpy: Any, world: Any, size: int, in_place: bool) -> Fact:
    width = numpy.dtype(plan.dtype).itemsize
    count = max(1, size // width)
    needed = _BUFFERS * count * max(width, 8)
    # Everybody or nobody: a rank that leaves a size out would leave the others waiting.
    if not all(world.allgather(needed < _available_bytes())):
        return BenchLeftOut(f"{size} bytes", f"needs {needed / 2**30:.1f} GiB of memory on each rank, and less is free")
    rank, ranks = world.Get_rank(), world.Get_size()
    mine = checking.numbers(numpy, count, rank, plan.dtype)
    batch, result, restore = backend.prepare(mine, in_place)
    wrong: Tuple[Optional[int], Optional[int]] = (None, None)
    allowed = checking.bound(plan.dtype, ranks)
    if plan.check:
        batch(1)
        wrong = checking.wrong(numpy, result(), checking.exact_sum(numpy, count, ranks), allowed)
        restore()

    def agree(number: int) -> int:
        return int(world.bcast(number, 0))

    def steady(calls: int) -> List[float]:
        # In place, sums grow with every call: put back before they leave the type's range.
        restore()
        return list(batch(calls))

    budget_s = plan.seconds / (2 * len(plan.sizes))
    timed = timing.repeat(steady, agree, plan.warmup, plan.iterations, budget_s)
    return _timing(backend.name, plan.dtype, count * width, count, in_place, timed, (*wrong, allowed))


def _timing(
    backend: str,
    dtype: str,
    size: int,
    count: int,
    in_place: bool,
    timed: timing.Timed,
    checked: Tuple[Optional[int], Optional[int], float],
) -> AllreduceTiming:
    return AllreduceTiming(
        backend=backend,
        dtype=dtype,
        size_bytes=size,
        count=count,
        in_place=in_place,
        repeats=len(timed.times_s),
        warmup=timed.warmup,
        first_s=timed.first_s,
        min_s=timed.times_s[0],
        median_s=timed.quantile(0.5),
        p95_s=timed.quantile(0.95),
        max_s=timed.times_s[-1],
        variation=timed.variation,
        wrong=checked[0],
        wrong_at=checked[1],
        bound=checked[2],
    )


def _gradients(plan: Plan, mpi: Any, world: Any, local_rank: int, level: str) -> Iterator[Tuple[str, Fact]]:
    communicator = plan.backend.partition(":")[2] or "naive"
    model = plan.model or "resnet50"
    backend = together(world, lambda: ChainermnBackend(mpi, world, communicator, model, local_rank))
    backend.connect()
    setup = BenchSetup(backend.name, backend.library, world.Get_size(), "float32", level, backend.device, 0, None)
    yield "start", setup
    wrong, wrong_at, allowed = backend.wrong() if plan.check else (None, None, 0.0)
    timed = timing.repeat(
        backend.batch, lambda number: int(world.bcast(number, 0)), plan.warmup, plan.iterations, plan.seconds
    )
    told = (wrong, wrong_at, allowed)
    yield "gradients", _timing(backend.name, "float32", backend.size_bytes, backend.parameters, True, timed, told)
    pack_s, allreduce_s, unpack_s = backend.phases(5)
    yield (
        "phases",
        GradientPhases(backend.name, model, backend.parameters, backend.size_bytes, pack_s, allreduce_s, unpack_s),
    )


def _copy_gbs(numpy: Any, size: int) -> float:
    source, target = numpy.ones(max(size, 2**20), numpy.uint8), numpy.empty(max(size, 2**20), numpy.uint8)
    best_s = float("inf")
    for _ in range(5):
        began_s = time.perf_counter()
        numpy.copyto(target, source)
        best_s = min(best_s, time.perf_counter() - began_s)
    return float(source.nbytes / best_s / 1e9)


def _available_bytes() -> int:
    """Memory that a process can still have: MemAvailable, or less where a control group (version 2) says so."""
    host = LiveHost()
    (seen,) = memory(host)
    assert isinstance(seen, HostMemory)
    if seen.limit_bytes is None:
        return seen.available_bytes
    try:
        used = int(host.read("/sys/fs/cgroup/memory.current"))
    except (OSError, ValueError):
        return seen.available_bytes
    return min(seen.available_bytes, max(0, seen.limit_bytes - used))


if __name__ == "__main__":
    sys.exit(main())
