"""NVIDIA GPUs and their driver, as NVML tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class GpuDriver(Fact):
    """``version`` such as ``550.54.15``; ``cuda`` is the newest CUDA that it supports as (major, minor)."""

    version: str
    cuda: Tuple[int, int]
    gpus: int


@dataclass(frozen=True)
class Gpu(Fact):
    """One device. ``compute_capability`` is (major, minor)."""

    index: int
    name: str
    uuid: str
    memory_bytes: int
    compute_capability: Optional[Tuple[int, int]]
    pci_bus_id: str
