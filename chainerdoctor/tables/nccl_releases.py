"""What is known of NCCL's releases: broken ranges, first versions for hardware, and variables. Data with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from chainerdoctor.tables.cuda_drivers import version_key

_NOTES = "NVIDIA/nccl release notes"
_GUIDE = 'NCCL user guide, "Environment Variables"'


@dataclass(frozen=True)
class BrokenRange:
    """Releases with a fault: from ``first`` (``None``: any older one) up to, but without, ``fixed``.

    ``applies`` says on which machines and use the fault shows: ``always``; ``one_gpu_per_node``, ``several_nodes``,
    ``many_ranks`` (256 or more), ``nvlink_down``, ``ll128`` (forced by NCCL_PROTO), ``mixed_cpus``,
    ``mixed_architectures``, ``docker``, ``hopper_pair`` (two H100).
    """

    first: Optional[str]
    fixed: str
    applies: str
    effect: str
    source: str = _NOTES


#: Faults of calls that Chainer and ChainerMN never make (alltoall, symmetric memory, Horovod) are left out.
BROKEN_RANGES: Tuple[BrokenRange, ...] = (
    BrokenRange(None, "2.4.6", "always", "long runs hang, and Tree over shared memory crashes"),
    BrokenRange(None, "2.8.3", "one_gpu_per_node", "LL128 hangs after 2^31 steps, and protocols may not match"),
    BrokenRange(None, "2.12.7", "nvlink_down", "results are corrupted when some NVLinks are down"),
    BrokenRange(None, "2.15.5", "hopper_pair", "Ring with LL128 hangs on two H100"),
    BrokenRange(None, "2.15.5", "ll128", "LL128 corrupts data in unaligned buffers"),
    BrokenRange(
        "2.18.1", "2.18.3", "one_gpu_per_node", "Tree with LL128 corrupts results with one GPU per network card"
    ),
    BrokenRange(None, "2.22.3", "mixed_cpus", "start-up hangs when the nodes' CPU types differ"),
    BrokenRange(None, "2.24.3", "mixed_architectures", "start-up hangs when GPU architectures are mixed"),
    BrokenRange("2.24", "2.26.3", "docker", "cuMem host allocations fail in Docker without --cap-add SYS_NICE"),
    BrokenRange(None, "2.28.9", "many_ranks", "large jobs may hang"),
)


@dataclass(frozen=True)
class FirstVersion:
    """The oldest NCCL that works with a GPU architecture (compute capability from ``capability`` on)."""

    capability: Tuple[int, int]
    name: str
    version: str
    source: str = _NOTES


#: Newest architecture first.
FIRST_VERSIONS: Tuple[FirstVersion, ...] = (
    FirstVersion((10, 0), "Blackwell", "2.25.1"),
    FirstVersion((9, 0), "Hopper", "2.15.1"),
    FirstVersion((8, 0), "Ampere", "2.7.3"),
)

#: NCCL built with CUDA 13 holds no code for architectures below this one.
CUDA_13_FLOOR = (7, 5)


@dataclass(frozen=True)
class DeadVariable:
    """A variable that newer versions ignore or discourage, and what takes its place."""

    name: str
    since: str
    instead: str
    source: str = _GUIDE


DEAD_VARIABLES: Tuple[DeadVariable, ...] = (
    DeadVariable("NCCL_SINGLE_RING_THRESHOLD", "2.3", "NCCL chooses by size itself"),
    DeadVariable("NCCL_IB_CUDA_SUPPORT", "2.4", "NCCL_NET_GDR_LEVEL"),
    DeadVariable("NCCL_TREE_THRESHOLD", "2.5", "NCCL chooses by size itself"),
    DeadVariable("NCCL_LL_THRESHOLD", "2.5", "NCCL chooses by size itself"),
    DeadVariable("NCCL_MIN_NCHANNELS", "2.17", "NCCL_MIN_CTAS"),
    DeadVariable("NCCL_MAX_NCHANNELS", "2.17", "NCCL_MAX_CTAS"),
)

#: Words that the two variables of distance take (user guide); whole numbers are discouraged.
LEVELS = {
    "NCCL_P2P_LEVEL": ("LOC", "NVL", "PIX", "PXB", "PHB", "SYS"),
    "NCCL_NET_GDR_LEVEL": ("LOC", "PIX", "PXB", "PHB", "SYS"),
}

#: From this version on a request by NCCL_ALGO or NCCL_PROTO that cannot be met is an error.
STRICT_CHOICE = "2.24"
#: From this version on NCCL_IB_GID_INDEX must not be set.
DYNAMIC_GID = "2.21"


def within(version: str, first: Optional[str], fixed: str) -> bool:
    """Whether ``version`` is one of the releases from ``first`` up to, but without, ``fixed``.

    Raises:
        ValueError: a version is not made of numbers and dots.
    """
    have = version_key(version)
    return (first is None or have >= version_key(first)) and have < version_key(fixed)
