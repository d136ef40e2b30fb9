"""MPI through mpi4py: the library that it loads, and the world after MPI_Init."""

from __future__ import annotations

import ctypes
import re
import time
from typing import Callable, Optional, Tuple

from chainerdoctor.facts.mpi import INTEL_MPI, MPICH, MVAPICH, OPEN_MPI, UNKNOWN_VENDOR, MpiLibrary, MpiWorld

#: How each library begins the text of MPI_Get_library_version, most special first (Intel and MVAPICH are MPICHs).
_SIGNATURES = (
    (INTEL_MPI, re.compile(r"Intel\(R\) MPI Library\D*([\d.]+)")),
    (MVAPICH, re.compile(r"MVAPICH2?\D*([\d.]+\w*)")),
    (OPEN_MPI, re.compile(r"Open MPI v?([\d.]+\w*)")),
    (MPICH, re.compile(r"MPICH Version:\s*([\d.]+\w*)")),
)
_LEVELS = ("single", "funneled", "serialized", "multiple")


def vendor_and_version(text: str) -> Tuple[str, str]:
    """Vendor and version out of the text of ``MPI_Get_library_version``."""
    for vendor, pattern in _SIGNATURES:
        found = pattern.search(text)
        if found:
            return vendor, found.group(1)
    return UNKNOWN_VENDOR, text.split("\n")[0][:80]


def keep_uninitialised() -> None:
    """Importing ``mpi4py.MPI`` (ChainerMN does) is not to call MPI_Init in this process. No mpi4py is no error."""
    try:
        import mpi4py
    except ImportError:
        return
    mpi4py.rc.initialize = False


def library() -> MpiLibrary:
    """The library that mpi4py loads. MPI is not initialised: MPI_Get_library_version is valid before MPI_Init.

    Raises:
        ImportError: no mpi4py, or it finds no MPI library.
        RuntimeError: the same, from mpi4py's wheels.
    """
    keep_uninitialised()
    import mpi4py
    from mpi4py import MPI

    vendor, version = vendor_and_version(MPI.Get_library_version())
    return MpiLibrary(vendor, version, _mapped_libmpi() or "", mpi4py.__version__)


def _mapped_libmpi() -> Optional[str]:
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            columns = line.rstrip("\n").split(None, 5)
            if len(columns) == 6 and re.search(r"/libmpi(ch)?(_abi)?(-[0-9a-f]{8})?\.so[^/]*$", columns[5]):
                return columns[5]
    return None


def join_world() -> Tuple[MpiWorld, Callable[[], None]]:
    """Initialise MPI in this thread (level multiple, mpi4py's default); the world, and the call that finalises.

    Raises:
        ImportError: no mpi4py or no MPI library.
        RuntimeError: the same, from mpi4py's wheels.
    """
    import mpi4py

    mpi4py.rc.initialize = False
    mpi4py.rc.finalize = False
    from mpi4py import MPI

    began_s = time.monotonic()
    provided = MPI.Init_thread(MPI.THREAD_MULTIPLE)
    took_s = time.monotonic() - began_s
    numbers = (MPI.THREAD_SINGLE, MPI.THREAD_FUNNELED, MPI.THREAD_SERIALIZED, MPI.THREAD_MULTIPLE)
    told = MpiWorld(
        rank=MPI.COMM_WORLD.Get_rank(),
        size=MPI.COMM_WORLD.Get_size(),
        processor_name=MPI.Get_processor_name(),
        thread_level=dict(zip(numbers, _LEVELS)).get(provided, str(provided)),
        cuda_aware=_cuda_aware(_mapped_libmpi()),
        init_s=took_s,
    )
    return told, MPI.Finalize


#: Tag of the shards; any number would do, nobody else talks in these processes.
_TAG = 4711


def receive_shards(take: Callable[[bytes], None], stopped: Callable[[], bool]) -> None:
    """On rank 0: take one message of bytes from every other rank, until all came or ``stopped()``."""
    from mpi4py import MPI

    status = MPI.Status()
    for _ in range(MPI.COMM_WORLD.Get_size() - 1):
        # Polling, not a blocking receive: a rank that never sends must not keep this one.
        while not MPI.COMM_WORLD.Iprobe(MPI.ANY_SOURCE, _TAG, status):
            if stopped():
                return
            time.sleep(0.005)
        buffer = bytearray(status.Get_count(MPI.BYTE))
        MPI.COMM_WORLD.Recv([buffer, MPI.BYTE], status.Get_source(), _TAG)
        take(bytes(buffer))


def send_shard(shard: bytes, stopped: Callable[[], bool]) -> bool:
    """Send bytes to rank 0; whether they went before ``stopped()``."""
    from mpi4py import MPI

    request = MPI.COMM_WORLD.Isend([shard, MPI.BYTE], 0, _TAG)
    while not request.Test():
        if stopped():
            return False
        time.sleep(0.005)
    return True


def _cuda_aware(path: Optional[str]) -> Optional[bool]:
    """``MPIX_Query_cuda_support`` of Open MPI and MPICH; ``None`` where the library has no such call."""
    if path is None:
        return None
    try:
        query = ctypes.CDLL(path).MPIX_Query_cuda_support
    except (OSError, AttributeError):
        return None
    return bool(query())
