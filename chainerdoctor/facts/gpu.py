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


@dataclass(frozen=True)
class GpuMemory(Fact):
    """Memory of one device before the run, in bytes. ``reserved_bytes`` is the driver's own part and not in
    ``used_bytes``; ``None`` where the driver cannot tell it apart (it is then within ``used_bytes``)."""

    index: int
    total_bytes: int
    used_bytes: int
    free_bytes: int
    reserved_bytes: Optional[int]


@dataclass(frozen=True)
class GpuClocks(Fact):
    """Clocks, heat and power of one device. ``throttle_bits`` are NVML's clock-event reasons; ``pstate`` 0 is the
    fastest. A field is ``None`` where the card cannot tell it."""

    index: int
    sm_mhz: Optional[int]
    sm_max_mhz: Optional[int]
    sm_application_mhz: Optional[int]
    memory_mhz: Optional[int]
    memory_max_mhz: Optional[int]
    throttle_bits: Optional[int]
    pstate: Optional[int]
    temperature_c: Optional[int]
    temperature_slowdown_c: Optional[int]
    power_mw: Optional[int]
    power_limit_mw: Optional[int]
    power_default_mw: Optional[int]


@dataclass(frozen=True)
class GpuErrors(Fact):
    """Faults of one device's memory. ``uncorrected*`` and ``corrected`` count since the driver was loaded, ``*_ever``
    over the card's life; ``retired_*`` are pages (cards before Ampere), ``remap*`` rows (Ampere and later)."""

    index: int
    ecc: Optional[bool]
    corrected: Optional[int]
    uncorrected: Optional[int]
    uncorrected_ever: Optional[int]
    uncorrected_sram: Optional[int]
    uncorrected_sram_ever: Optional[int]
    remapped_corrected: Optional[int]
    remapped_uncorrected: Optional[int]
    remap_pending: Optional[bool]
    remap_failed: Optional[bool]
    retired_single: Optional[int]
    retired_double: Optional[int]
    retired_pending: Optional[bool]


@dataclass(frozen=True)
class GpuModes(Fact):
    """How one device is set up. ``compute_mode``: 0 default, 2 prohibited, 3 one process."""

    index: int
    persistence: Optional[bool]
    mig: Optional[bool]
    compute_mode: Optional[int]


@dataclass(frozen=True)
class GpuPcie(Fact):
    """The PCIe link of one device now, the most that card and slot allow together (``*_max``), and the card alone
    (``generation_card``). ``replays`` are packets that were sent again since the driver was loaded."""

    index: int
    generation: Optional[int]
    generation_max: Optional[int]
    generation_card: Optional[int]
    width: Optional[int]
    width_max: Optional[int]
    replays: Optional[int]


@dataclass(frozen=True)
class GpuProcess(Fact):
    """A process on a device. ``used_bytes``, ``name`` and ``own_user`` (it is run by the user who runs the check) are
    ``None`` where they cannot be told, as in containers; ``of_this_check`` marks processes of the check itself."""

    index: int
    pid: int
    used_bytes: Optional[int]
    graphics: bool
    name: Optional[str]
    own_user: Optional[bool]
    of_this_check: bool


@dataclass(frozen=True)
class GpuLost(Fact):
    """A device that the driver lists and that no longer answers: NVML's call and its words."""

    index: int
    call: str
    detail: str
