"""Ways of summing over ranks: MPI on host memory, NCCL on device memory through CuPy. ChainerMN is in gradients.py."""

from __future__ import annotations

import os
import time
from typing import Any, Callable, List, Optional, Tuple

from chainerdoctor.workloads.collectives import own_device

#: NCCL's numbers of types (nccl.h).
_NCCL_TYPES = {"float16": 6, "float32": 7, "float64": 8}
_NCCL_SUM = 0


class RefusedError(Exception):
    """This backend cannot do what is asked; the text says why in one line."""


def together(world: Any, make: Callable[[], Any]) -> Any:
    """What ``make`` gives, if it gives something on every rank; it must not communicate.

    Raises:
        RefusedError: on every rank, if it was refused on any: one alone would leave the others waiting.
    """
    made, why = None, ""
    try:
        made = make()
    except RefusedError as error:
        why = str(error)
    except Exception as error:  # whatever it is, the other ranks have to hear of it
        why = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
    for rank, each in enumerate(world.allgather(why)):
        if each:
            raise RefusedError(each if each == why else f"rank {rank}: {each}")
    return made


class MpiBackend:
    """``MPI_Allreduce`` through mpi4py's buffer interface on NumPy arrays."""

    name = "mpi"
    device: Optional[int] = None

    def __init__(self, mpi: Any, world: Any, dtype: str) -> None:
        import numpy

        if dtype == "float16":
            raise RefusedError("MPI has no standard 16-bit float that it can sum; use --backend nccl, or float32")
        self._mpi, self._world, self._dtype, self._numpy = mpi, world, dtype, numpy
        self._type = {"float32": mpi.FLOAT, "float64": mpi.DOUBLE}[dtype]
        self.library = mpi.Get_library_version().split("\n")[0].split(",")[0].strip("\0 ")[:60]

    def prepare(
        self, mine: Any, in_place: bool
    ) -> Tuple[Callable[[int], List[float]], Callable[[], Any], Callable[[], None]]:
        """(times of k calls, the result as an array, put the numbers back)."""
        send = mine.copy()
        receive = mine.copy() if in_place else self._numpy.zeros_like(mine)
        given = self._mpi.IN_PLACE if in_place else [send, self._type]
        taken = [receive, self._type]
        operation, call, clock = self._mpi.SUM, self._world.Allreduce, time.perf_counter

        def batch(count: int) -> List[float]:
            times = []
            self._world.Barrier()
            for _ in range(count):
                began = clock()
                call(given, taken, operation)
                times.append(clock() - began)
            return times

        def restore() -> None:
            receive[...] = mine if in_place else 0

        return batch, lambda: receive, restore

    def connect(self) -> None:
        """Nothing to do: MPI has its communicator."""


class NcclBackend:
    """``ncclAllReduce`` through CuPy's communicator on device memory, timed by CUDA events."""

    name = "nccl"

    def __init__(self, world: Any, dtype: str, local_rank: int) -> None:
        try:
            import cupy
            from cupy.cuda import nccl
        except Exception as error:
            raise RefusedError(f"CuPy's NCCL: {type(error).__name__}: {' '.join(str(error).split())[:200]}") from None
        try:
            gpus = cupy.cuda.runtime.getDeviceCount()
        except Exception as error:
            raise RefusedError(f"no GPU: {' '.join(str(error).split())[:200]}") from None
        # CUDA counts only the visible devices, so that the variable has had its effect already.
        device = own_device(local_rank, gpus, None if gpus > 1 else os.environ.get("CUDA_VISIBLE_DEVICES"))
        if device is None:
            raise RefusedError(f"{gpus} GPUs are seen and this is local rank {local_rank}: start one rank for each GPU")
        self._cupy, self._nccl, self._type, self.device = cupy, nccl, _NCCL_TYPES[dtype], device
        self._world = world
        self._communicator: Any = None
        self.library = f"NCCL {nccl.get_version()}"

    def connect(self) -> None:
        """Make the communicator; every rank has to take part."""
        self._cupy.cuda.Device(self.device).use()
        rank, size = self._world.Get_rank(), self._world.Get_size()
        unique = self._world.bcast(self._nccl.get_unique_id() if rank == 0 else None, 0)
        self._communicator = self._nccl.NcclCommunicator(size, unique, rank)

    def prepare(
        self, mine: Any, in_place: bool
    ) -> Tuple[Callable[[int], List[float]], Callable[[], Any], Callable[[], None]]:
        """(times of k calls, the result as an array, put the numbers back)."""
        cupy = self._cupy
        send = cupy.asarray(mine)
        receive = send if in_place else cupy.zeros_like(send)
        stream = cupy.cuda.get_current_stream()
        call, count_of = self._communicator.allReduce, mine.size

        def batch(count: int) -> List[float]:
            events = [(cupy.cuda.Event(), cupy.cuda.Event()) for _ in range(count)]
            self._world.Barrier()
            for began, ended in events:
                began.record(stream)
                call(send.data.ptr, receive.data.ptr, count_of, self._type, _NCCL_SUM, stream.ptr)
                ended.record(stream)
            stream.synchronize()
            return [cupy.cuda.get_elapsed_time(began, ended) / 1e3 for began, ended in events]

        def restore() -> None:
            send.set(mine)
            if not in_place:
                receive[...] = 0
            stream.synchronize()

        return batch, lambda: cupy.asnumpy(receive), restore
