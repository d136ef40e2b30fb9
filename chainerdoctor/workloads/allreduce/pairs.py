"""Who is slow: every pair of ranks exchanges messages, suspects again and alone; then who comes last to a collective."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, Iterator, List, Tuple

from chainerdoctor.facts import Fact
from chainerdoctor.facts.bandwidth import PairTiming, Waiting
from chainerdoctor.workloads.collectives import rounds

MESSAGE_BYTES = 256 * 1024
REPEATS = 6
#: A pair whose best is so much longer than a usual pair's is measured again.
SUSPECT = 1.5
#: Passes over the suspects, alone, with more repeats: what is only noise has a good moment in one of them.
CONFIRMATIONS = 3
CONFIRM_REPEATS = 12
#: Most suspects that are measured again; beyond that the whole network is uneven.
MOST_SUSPECTS = 64
ROUNDS = 24
WORK_S = 0.004

Exchange = Callable[[Any, int, bytearray, bytearray], None]


def exchange(world: Any, other: int, given: bytearray, taken: bytearray) -> None:
    """One message each way, at once."""
    world.Sendrecv(given, other, 1, taken, other, 1)


def pair_timings(world: Any, swap: Exchange = exchange) -> Iterator[Fact]:
    """A :class:`PairTiming` for each pair of which this rank is the first."""
    rank, size = world.Get_rank(), world.Get_size()
    given, taken = bytearray(MESSAGE_BYTES), bytearray(MESSAGE_BYTES)
    passes: Dict[Tuple[int, int], List[float]] = {}
    samples: Dict[Tuple[int, int], List[float]] = {}

    def meet(one: int, two: int, repeats: int) -> None:
        if rank not in (one, two):
            return
        other, times = two if rank == one else one, []
        for _ in range(repeats):
            # Asleep for a moment, so that the scheduler may place the two anew: side by side on one processor they would
            # look like a slow link. Then a word, so that nobody's sleep is part of the time.
            time.sleep(0.001)
            world.Sendrecv(bytearray(1), other, 2, bytearray(1), other, 2)
            began_s = time.perf_counter()
            swap(world, other, given, taken)
            times.append(time.perf_counter() - began_s)
        passes.setdefault((one, two), []).append(min(times[1:]))  # the first one also opens the connection
        samples.setdefault((one, two), []).extend(times[1:])

    for pairs in rounds(list(range(size))):
        quiet_barrier(world)
        for one, two in pairs:
            meet(one, two, REPEATS + 1)
    for _ in range(CONFIRMATIONS):
        for one, two in _suspects(world, passes):
            quiet_barrier(world)
            meet(one, two, CONFIRM_REPEATS + 1)
    quiet_barrier(world)
    for (one, two), bests in sorted(passes.items()):
        if rank == one:
            own = sorted(samples[one, two])
            middle = own[len(own) // 2]
            noise = tuple(round(each / middle, 3) for each in samples[one, two][:24])
            yield PairTiming(one, two, MESSAGE_BYTES, min(bests), tuple(bests), noise)


def quiet_barrier(world: Any) -> None:
    """A barrier whose waiters sleep: MPI's own spins, and takes the processor from the pair that is measured."""
    request = world.Ibarrier()
    while not request.Test():
        time.sleep(0.0005)


def _suspects(world: Any, passes: Dict[Tuple[int, int], List[float]]) -> List[Tuple[int, int]]:
    """The same list on all ranks: both sides of a pair hand in what they saw, and the shorter time counts."""
    best: Dict[Tuple[int, int], float] = {}
    for each in world.allgather({pair: min(bests) for pair, bests in passes.items()}):
        for pair, took_s in each.items():
            best[pair] = min(took_s, best.get(pair, took_s))
    if not best:
        return []
    usual = sorted(best.values())[len(best) // 4]
    return sorted(pair for pair, took_s in best.items() if took_s > SUSPECT * usual)[:MOST_SUSPECTS]


def work() -> None:
    """The same work for every rank, done by the processor alone."""
    until_s = time.thread_time() + WORK_S
    while time.thread_time() < until_s:
        pass


def waiting(mpi: Any, world: Any, do_work: Callable[[], None] = work) -> Waiting:
    """How long this rank waits in all-reduces that follow equal work. Who waits least came last."""
    import array

    rank = world.Get_rank()
    mine, told = array.array("d", [1.0]), array.array("d", [0.0])
    waits: List[float] = []
    works: List[float] = []
    for _ in range(ROUNDS):
        world.Barrier()
        began_s = time.perf_counter()
        do_work()
        arrived_s = time.perf_counter()
        world.Allreduce([mine, mpi.DOUBLE], [told, mpi.DOUBLE], mpi.SUM)
        waits.append(time.perf_counter() - arrived_s)
        works.append(arrived_s - began_s)
    everybody = world.allgather(waits)
    last = sum(min(range(len(everybody)), key=lambda each: everybody[each][turn]) == rank for turn in range(ROUNDS))
    return Waiting(rank, ROUNDS, sorted(waits)[ROUNDS // 2], sorted(works)[ROUNDS // 2], last)
