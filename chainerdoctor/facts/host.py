"""The machine itself: operating system, processors, memory, limits, clock."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class OperatingSystem(Fact):
    """``container`` names the container runtime if the process runs in one; ``distro`` is the pretty name."""

    hostname: str
    kernel: str
    distro: str
    architecture: str
    container: Optional[str]


@dataclass(frozen=True)
class Boot(Fact):
    """``boot_id`` is random at each boot: two machines never share it, two containers on one machine do."""

    boot_id: str


@dataclass(frozen=True)
class Processors(Fact):
    """``usable`` counts the logical processors that this process may run on (affinity, cgroup)."""

    model: str
    sockets: int
    logical: int
    usable: int
    numa_nodes: int


@dataclass(frozen=True)
class HostMemory(Fact):
    """``limit_bytes`` is the cgroup's memory limit, ``None`` if there is none."""

    total_bytes: int
    available_bytes: int
    limit_bytes: Optional[int]


@dataclass(frozen=True)
class SharedMemory(Fact):
    """The file system at ``path`` (/dev/shm), which NCCL and MPI use between ranks of one node."""

    path: str
    size_bytes: int
    free_bytes: int


@dataclass(frozen=True)
class ResourceLimit(Fact):
    """One ulimit as the rank sees it under its launcher; ``None`` means unlimited. Bytes, or a count for nofile."""

    name: str
    soft: Optional[int]
    hard: Optional[int]


@dataclass(frozen=True)
class HugePages(Fact):
    """The active choice of /sys/kernel/mm/transparent_hugepage/enabled."""

    transparent: str


@dataclass(frozen=True)
class Iommu(Fact):
    """``groups`` counts IOMMU groups (0: off); ``passthrough`` whether the kernel was booted with iommu=pt."""

    groups: int
    passthrough: bool


@dataclass(frozen=True)
class AccessControl(Fact):
    """ACS of one PCI bridge: with source validation on, peer traffic goes through the root complex."""

    bridge: str
    source_validation: bool


@dataclass(frozen=True)
class ClockOffset(Fact):
    """Bounds, in seconds, of this node's clock minus that of the machine that gathered the snapshot."""

    low_s: float
    high_s: float
