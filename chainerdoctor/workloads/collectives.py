"""Between ranks, after MPI_Init: a checked sum by MPI, the links between nodes, and NCCL from its bootstrap to a sum.

Every rank does the same steps in the same order. What could block for ever on one side (NCCL) runs in a thread of its
own with a patience; what MPI blocks is the business of the shelter around.
"""

from __future__ import annotations

import array
import os
import socket
import struct
import threading
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from chainerdoctor.facts import ABSENT, UNSUPPORTED, Fact, Missing
from chainerdoctor.facts.workload import MpiAllreduce, NcclAllreduce, NcclReach, NodeLink

#: What :func:`between_ranks` can give.
BETWEEN_RANKS = (MpiAllreduce, NodeLink, NcclReach, NcclAllreduce)
#: Elements of the sums: int32 through MPI, float32 through NCCL.
ELEMENTS = 64 * 1024
#: Bytes of a message between nodes, and how often the two sides exchange it.
LINK_BYTES = 2**20
LINK_REPEATS = 6
#: Below this share of the median a pair is measured again, alone, so often.
SUSPECT = 0.6
CONFIRM_REPEATS = 12
#: Rounds between nodes; beyond so many nodes each meets only a part of the others.
MOST_ROUNDS = 63
NCCL_PATIENCE_S = 15.0
CONNECT_PATIENCE_S = 3.0
#: NCCL's numbers (nccl.h): ncclFloat32 and ncclSum.
_NCCL_FLOAT32, _NCCL_SUM = 7, 0


def between_ranks(local_rank: Optional[int], gpus: int, why_no_nccl: str) -> Iterator[Fact]:
    """Facts of this rank. MPI has to be initialised. ``gpus`` are the devices that this node has, 0 for none;
    ``why_no_nccl`` is empty where CuPy's NCCL can be imported without harm."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    yield mpi_allreduce(MPI, world)
    yield from node_links(MPI, world)
    yield from nccl(MPI, world, local_rank, gpus, why_no_nccl)


def mpi_allreduce(MPI: Any, world: Any) -> MpiAllreduce:  # noqa: N803  (the module's own name)
    """Sum small integers, the exact result of which each rank knows."""
    rank, size = world.Get_rank(), world.Get_size()
    mine = array.array("i", [(i % 7) * (rank + 1) for i in range(ELEMENTS)])
    told = array.array("i", [0]) * ELEMENTS
    world.Barrier()
    began_s = time.perf_counter()
    world.Allreduce([mine, MPI.INT], [told, MPI.INT], MPI.SUM)
    took_s = time.perf_counter() - began_s
    total = size * (size + 1) // 2
    wrong = sum(told[i] != (i % 7) * total for i in range(ELEMENTS))
    return MpiAllreduce(size, ELEMENTS * mine.itemsize, wrong, took_s)


def node_links(MPI: Any, world: Any) -> Iterator[Fact]:  # noqa: N803
    """The first rank of each node meets that of every other node, in rounds of disjoint pairs (circle method).

    Pairs that look slow are measured once more, one at a time: what was only the noise of a busy machine is gone then.
    """
    node = os.uname().nodename
    names = world.allgather(node)
    firsts = [names.index(name) for name in dict.fromkeys(names)]
    if len(firsts) < 2:
        return
    given, taken = bytearray(LINK_BYTES), bytearray(LINK_BYTES)
    rank = world.Get_rank()
    mine: Dict[Tuple[int, int], float] = {}

    def meet(one: int, two: int, repeats: int) -> None:
        if rank not in (one, two):
            return
        other, best_s = two if rank == one else one, float("inf")
        for _ in range(repeats):
            began_s = time.perf_counter()
            world.Sendrecv([given, MPI.BYTE], other, 1, [taken, MPI.BYTE], other, 1)
            best_s = min(best_s, time.perf_counter() - began_s)
        mine[one, two] = max(mine.get((one, two), 0.0), LINK_BYTES / best_s / 1e9)

    for pairs in rounds(firsts):
        world.Barrier()
        for one, two in pairs:
            meet(one, two, LINK_REPEATS)
    told: Dict[Tuple[int, int], float] = {pair: gbs for each in world.allgather(mine) for pair, gbs in each.items()}
    usual = sorted(told.values())[len(told) // 2]
    suspects = sorted(pair for pair, gbs in told.items() if gbs < SUSPECT * usual)
    for one, two in suspects[:MOST_ROUNDS]:
        world.Barrier()
        meet(one, two, CONFIRM_REPEATS)
    for (one, two), gbs in mine.items():
        if rank == one:
            yield NodeLink(node, names[two], LINK_BYTES, gbs)


def rounds(players: List[int]) -> Iterator[List[Tuple[int, int]]]:
    """Rounds of disjoint pairs in which everybody meets everybody once: the circle method of tournaments."""
    seats: List[Optional[int]] = [*players, *([None] if len(players) % 2 else [])]
    half = len(seats) // 2
    for _ in range(min(len(seats) - 1, MOST_ROUNDS)):
        pairs = zip(seats[:half], reversed(seats[half:]))
        yield [(one, two) for one, two in pairs if one is not None and two is not None]
        seats = [seats[0], seats[-1], *seats[1:-1]]


def nccl(MPI: Any, world: Any, local_rank: Optional[int], gpus: int, why: str) -> Iterator[Fact]:  # noqa: N803
    """Bootstrap reachability (needs no GPU), then a communicator and a sum where every rank has a device."""
    rank, size = world.Get_rank(), world.Get_size()
    reach, all_reduce = (NcclReach.__name__,), (NcclAllreduce.__name__,)
    library, why = (None, why) if why else _nccl_of_cupy()
    if not all(world.allgather(library is not None)):
        detail = why or "a rank has no NCCL in its CuPy"
        yield Missing("nccl_workload", ABSENT, detail, (*reach, *all_reduce))
        return
    if size < 2:
        yield Missing("nccl_workload", ABSENT, "there is one rank only", (*reach, *all_reduce))
        return
    assert library is not None
    unique, why = _shared_id(world, rank, library)
    if unique is None:
        yield Missing("nccl_workload", ABSENT, why, (*reach, *all_reduce))
        return
    if rank:
        yield _reach(unique)
    world.Barrier()
    device = own_device(local_rank if local_rank is not None else rank, gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if any(each is None for each in world.allgather(device)) or device is None:
        detail = "not every rank has a GPU of its own" if gpus else "no GPU is seen"
        yield Missing("nccl_workload", UNSUPPORTED if gpus else ABSENT, detail, all_reduce)
        return
    unique, why = _shared_id(world, rank, library)
    yield _patiently(library, unique, rank, size, device)


def _nccl_of_cupy() -> Tuple[Optional[Any], str]:
    try:
        from cupy.cuda import nccl as library
    except Exception as error:
        return None, f"CuPy's NCCL: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    return (library, "") if getattr(library, "available", True) else (None, "this CuPy has no NCCL")


def _shared_id(world: Any, rank: int, library: Any) -> Tuple[Optional[Tuple[int, ...]], str]:
    made: Tuple[Optional[Tuple[int, ...]], str] = (None, "")
    if rank == 0:
        try:
            made = (tuple(library.get_unique_id()), "")
        except Exception as error:
            made = (None, f"ncclGetUniqueId on rank 0: {type(error).__name__}: {error}")
    shared: Tuple[Optional[Tuple[int, ...]], str] = world.bcast(made, 0)
    return shared


def bootstrap_address(unique: Tuple[int, ...]) -> Optional[Tuple[str, int]]:
    """Address and port in a ``ncclUniqueId``: a ``sockaddr`` behind eight bytes (NCCL 2.14 and later) or at its start.

    Seen in the ids of NCCL 2.18 to 2.28; the layout is NCCL's own affair, so ``None`` is no fault.
    """
    raw = bytes(each & 0xFF for each in unique)
    for offset in (8, 0):
        family = struct.unpack_from("<H", raw, offset)[0]
        port = struct.unpack_from(">H", raw, offset + 2)[0]
        if family == socket.AF_INET and port:
            return socket.inet_ntop(socket.AF_INET, raw[offset + 4 : offset + 8]), port
        if family == socket.AF_INET6 and port:
            return socket.inet_ntop(socket.AF_INET6, raw[offset + 8 : offset + 24]), port
    return None


def own_device(local_rank: int, gpus: int, visible: Optional[str]) -> Optional[int]:
    """The number by which this rank's program will use its GPU; ``None`` if there is none for it alone.

    A launcher that gives each rank one visible device leaves it number 0; else it is the local rank, as in ChainerMN.
    """
    count = gpus if visible is None else min(gpus, len([each for each in visible.split(",") if each.strip()]))
    if visible is not None and count == 1:
        return 0
    return local_rank if local_rank < count else None


def _reach(unique: Tuple[int, ...]) -> Fact:
    found = bootstrap_address(unique)
    if found is None:
        return Missing("nccl_workload", UNSUPPORTED, "no address in this NCCL's unique id", (NcclReach.__name__,))
    began_s = time.perf_counter()
    try:
        # NCCL takes a stranger that says nothing for noise, and this id is never used.
        socket.create_connection(found, CONNECT_PATIENCE_S).close()
        reached, detail = True, ""
    except OSError as error:
        reached, detail = False, error.strerror or str(error)
    return NcclReach(*found, reached, detail, time.perf_counter() - began_s)


def _patiently(library: Any, unique: Optional[Tuple[int, ...]], rank: int, size: int, device: int) -> Fact:
    told: Dict[str, Any] = {"step": "init"}

    def run() -> None:
        try:
            _all_reduce(library, unique, rank, size, device, told)
        except Exception as error:
            told["error"] = f"{told['step']}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(NCCL_PATIENCE_S)
    hung = thread.is_alive()
    state = f"{told['step']}: no answer in {NCCL_PATIENCE_S:.0f} s" if hung else told.get("error", "complete")
    return NcclAllreduce(
        ranks=size,
        index=device,
        version=str(library.get_version()),
        state=state,
        hung=hung,
        size_bytes=4 * ELEMENTS,
        wrong=None if hung else told.get("wrong"),
        init_s=told.get("init_s"),
        took_s=told.get("took_s"),
    )


def _all_reduce(library: Any, unique: Any, rank: int, size: int, device: int, told: Dict[str, Any]) -> None:
    import cupy

    with cupy.cuda.Device(device):
        mine = cupy.asarray(_numbers(rank))
        result = cupy.zeros_like(mine)
        stream = cupy.cuda.get_current_stream()
        stream.synchronize()
        began_s = time.perf_counter()
        communicator = library.NcclCommunicator(size, unique, rank)
        told["init_s"] = time.perf_counter() - began_s
        told["step"] = "all-reduce"

        def run() -> None:
            communicator.allReduce(mine.data.ptr, result.data.ptr, ELEMENTS, _NCCL_FLOAT32, _NCCL_SUM, stream.ptr)
            stream.synchronize()

        run()  # the first one also makes connections
        told["took_s"] = _timed(run)
        expected = sum(_numbers(each) for each in range(size))
        told["wrong"] = int((cupy.asnumpy(result) != expected).sum())
        told["step"] = "end"
        communicator.destroy()


def _numbers(rank: int) -> Any:
    import numpy

    # Small integers: their sums are exact in float32, in any order, up to a million ranks.
    return ((numpy.arange(ELEMENTS) * 31 + 7 * rank) % 13).astype(numpy.float32)


def _timed(run: Callable[[], None]) -> float:
    began_s = time.perf_counter()
    run()
    return time.perf_counter() - began_s
