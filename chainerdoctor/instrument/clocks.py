"""The clock by which calls are timed, and how far two ranks' clocks are apart.

Ranks on one node read the same ``CLOCK_MONOTONIC`` (unless they are in different time namespaces). Others are compared
by ping-pong: of many rounds the fastest counts, and half its round trip bounds the error (RFC 5905, section 8).
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import time
from typing import Any, Callable, Optional, Tuple

_ROUNDS = 40
_TAG = 7001
_PATIENCE_S = 3.0
_MESSAGE = struct.Struct("<Qq")


def now_ns() -> int:
    """Nanoseconds of ``CLOCK_MONOTONIC``: the same for all processes of a node."""
    return time.monotonic_ns()


def clock_identity() -> str:
    """Equal for processes that read the same clock: the boot and the time namespace."""
    parts = []
    with contextlib.suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        parts.append(file.read().strip())
    with contextlib.suppress(OSError):
        parts.append(os.readlink("/proc/self/ns/time"))
    return " ".join(parts)


class PingPong:
    """Compares the clock of every rank of an MPI communicator with that of its rank 0, on a duplicate of its own."""

    def __init__(self, mpi_comm: Any) -> None:
        self._comm = mpi_comm.Dup()

    def measure(self) -> Optional[Tuple[int, int]]:
        """Offset of this rank's clock and its uncertainty (ns), told to the rank itself; ``None`` if a peer did not
        answer in time. Every rank has to call it; nobody waits longer than a few seconds for those that do not.
        """
        mpi = sys.modules["mpi4py.MPI"]
        if mpi.Is_finalized():
            return None
        comm = self._comm
        if comm.Get_rank():
            return self._answer(comm)
        for peer in range(1, comm.Get_size()):
            if not self._ask(comm, peer):
                return None
        return 0, 0

    def _ask(self, comm: Any, peer: int) -> bool:
        best, offset = sys.maxsize, 0
        buffer = bytearray(_MESSAGE.size)
        for number in range(_ROUNDS):
            sent_ns = now_ns()
            if not _send(comm, _MESSAGE.pack(number, 0), peer) or not _receive(comm, buffer, peer, idle=False):
                return False
            back_ns = now_ns()
            if back_ns - sent_ns < best:
                best, offset = back_ns - sent_ns, _MESSAGE.unpack(buffer)[1] - (sent_ns + back_ns) // 2
        return _send(comm, _MESSAGE.pack(_ROUNDS, offset), peer) and _send(comm, _MESSAGE.pack(best // 2, 0), peer)

    def _answer(self, comm: Any) -> Optional[Tuple[int, int]]:
        buffer = bytearray(_MESSAGE.size)
        number = 0
        while True:
            # Until it is this rank's turn it must not take the processor from those whose turn it is.
            if not _receive(comm, buffer, 0, idle=number == 0):
                return None
            number, offset = _MESSAGE.unpack(buffer)
            if number == _ROUNDS:
                break
            if not _send(comm, _MESSAGE.pack(number, now_ns()), 0):
                return None
            number = 1
        if not _receive(comm, buffer, 0, idle=False):
            return None
        return offset, _MESSAGE.unpack(buffer)[0]


def _send(comm: Any, data: bytes, peer: int) -> bool:
    request = comm.Isend(data, dest=peer, tag=_TAG)
    return _until(request.Test, idle=False)


def _receive(comm: Any, buffer: bytearray, peer: int, idle: bool) -> bool:
    if not _until(lambda: bool(comm.Iprobe(source=peer, tag=_TAG)), idle):
        return False
    comm.Recv(buffer, source=peer, tag=_TAG)
    return True


def _until(done: Callable[[], bool], idle: bool) -> bool:
    until = time.monotonic() + _PATIENCE_S
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.001 if idle else 0)
    return True
