"""What short checked computations gave: products, copies and sums on every device, and between ranks.

Bandwidths are in GB/s (10^9 bytes a second) and count the bytes of the copy once. Times and bandwidths are the best of
several repeats: the best is what the hardware can do, the others what else ran at the time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from chainerdoctor.facts import Fact

#: Directions of a :class:`GpuCopy`.
WITHIN = "within the device"
FROM_PINNED = "from pinned memory"
TO_PINNED = "to pinned memory"
FROM_PAGEABLE = "from pageable memory"
TO_PAGEABLE = "to pageable memory"


@dataclass(frozen=True)
class GpuAllocation(Fact):
    """Memory of ``size_bytes`` was allocated by the driver and freed on a device."""

    index: int
    size_bytes: int
    took_s: float


@dataclass(frozen=True)
class GpuProduct(Fact):
    """A product of two float32 matrices (``order`` × ``order``) of small integers, whose sums float32 holds exactly.

    ``wrong`` rows of the result fail Freivalds' check (a random vector, float64, on the CPU), which finds every row with
    a single wrong element; ``gflops`` is 2·order³ operations over the best time.
    """

    index: int
    order: int
    wrong: int
    gflops: float


@dataclass(frozen=True)
class GpuCopy(Fact):
    """A copy that was read back and compared. ``direction`` is one of the names of this module."""

    index: int
    direction: str
    size_bytes: int
    wrong_bytes: int
    bandwidth_gbs: float


@dataclass(frozen=True)
class GpuPeerCopy(Fact):
    """A copy from device ``index`` to device ``other``, compared there. ``direct`` says whether CUDA lets one device
    reach the other's memory; else the copy goes through the host."""

    index: int
    other: int
    direct: bool
    size_bytes: int
    wrong_bytes: int
    bandwidth_gbs: float


@dataclass(frozen=True)
class GpuWorkloadFailed(Fact):
    """A step raised, crashed or did not answer; ``hung`` tells the last from the others. ``other`` is the second device
    of a peer copy."""

    index: int
    step: str
    reason: str
    hung: bool
    other: Optional[int] = None


@dataclass(frozen=True)
class CpuProduct(Fact):
    """The twin of :class:`GpuProduct` by NumPy, where no GPU is seen; checked with Python's own integers."""

    order: int
    wrong: int
    gflops: float


@dataclass(frozen=True)
class MpiAllreduce(Fact):
    """A sum over all ranks by MPI_Allreduce, as this rank got it; ``wrong`` elements differ from the exact sum."""

    ranks: int
    size_bytes: int
    wrong: int
    took_s: float


@dataclass(frozen=True)
class NodeLink(Fact):
    """Messages between the first ranks of two nodes by MPI, both ways at once: the best bandwidth one way."""

    node: str
    other: str
    size_bytes: int
    bandwidth_gbs: float


@dataclass(frozen=True)
class NcclReach(Fact):
    """Whether this rank can connect to where rank 0's NCCL waits for the others (its bootstrap address)."""

    address: str
    port: int
    reached: bool
    detail: str
    took_s: float


@dataclass(frozen=True)
class NcclAllreduce(Fact):
    """A communicator of all ranks and a checked sum by NCCL, through CuPy, on this rank's device.

    ``state`` is "complete", or what failed: "init: …", "all-reduce: …", with ``hung`` if there was no answer. ``wrong``
    elements differ from the exact sum. Times are ``None`` for what was not reached.
    """

    ranks: int
    index: int
    version: str
    state: str
    hung: bool
    size_bytes: int
    wrong: Optional[int]
    init_s: Optional[float]
    took_s: Optional[float]
