"""GPU facts out of ``nvidia-smi -q``, for nodes on which NVML itself cannot be loaded (no nvidia-ml-py that fits, a
library outside the loader's path). Written from captures of drivers 384 to 610: keys that a driver does not print are
``None``."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Optional, Tuple

from chainerdoctor.facts import Fact
from chainerdoctor.facts.gpu import Gpu, GpuClocks, GpuDriver, GpuErrors, GpuMemory, GpuModes, GpuPcie

#: Printed name of a clock-event reason → NVML's bit (nvml.h, nvmlClocksEventReason*).
_REASONS = {
    "idle": 0x1,
    "applications clocks setting": 0x2,
    "sw power cap": 0x4,
    "hw slowdown": 0x8,
    "sync boost": 0x10,
    "sw thermal slowdown": 0x20,
    "hw thermal slowdown": 0x40,
    "hw power brake slowdown": 0x80,
    "display clock setting": 0x100,
}
_COMPUTE_MODES = {"default": 0, "exclusive_thread": 1, "prohibited": 2, "exclusive_process": 3}
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*$")
_ENTRY = re.compile(r"( *)(\S.*?)(?:\s+: ?(.*)|:)?$")

Values = Dict[str, str]


def facts_of(text: str) -> Iterator[Fact]:
    """The driver and every GPU of a whole ``nvidia-smi -q`` output; nothing if it is none."""
    head, gpus = _sections(text)
    if "driver version" not in head:
        return
    major, _, minor = head.get("cuda version", "").partition(".")
    cuda = (int(major), int(minor)) if major.isdigit() and minor.isdigit() else (0, 0)
    yield GpuDriver(head["driver version"], cuda, len(gpus))
    for index, (bus, values) in enumerate(gpus):
        yield from _gpu(index, bus, values)


def _sections(text: str) -> Tuple[Values, List[Tuple[str, Values]]]:
    """Keys before the first GPU, and for each GPU its bus id and its keys, joined by dots and in small letters."""
    head: Values = {}
    gpus: List[Tuple[str, Values]] = []
    path: List[Tuple[int, str]] = []
    for line in text.splitlines():
        found = _GPU.match(line)
        if found is not None:
            gpus.append((found[1], {}))
            path = []
            continue
        entry = _ENTRY.match(line)
        if entry is None or not line.strip():
            continue
        depth, name, value = len(entry[1]), entry[2].strip().lower(), entry[3]
        while path and path[-1][0] >= depth:
            path.pop()
        key = ".".join([above for _, above in path] + [name])
        path.append((depth, name))
        if value is not None:
            (gpus[-1][1] if gpus else head).setdefault(key, value.strip())
    return head, gpus


def _gpu(index: int, bus: str, values: Values) -> Iterator[Fact]:
    def first(*keys: str) -> Optional[str]:
        told = (values.get(key) for key in keys)
        return next(
            (
                value
                for value in told
                if value not in (None, "N/A", "[N/A]", "Requested functionality has been deprecated")
            ),
            None,
        )

    def number(*keys: str) -> Optional[int]:
        value = first(*keys)
        found = re.match(r"(\d+)", value) if value is not None else None
        return None if found is None else int(found[1])

    def yes(*keys: str) -> Optional[bool]:
        value = first(*keys)
        return None if value is None else value.lower() in ("yes", "enabled", "active")

    def milliwatts(*keys: str) -> Optional[int]:
        value = first(*keys)
        found = re.match(r"(\d+(?:\.\d+)?) W", value) if value is not None else None
        return None if found is None else round(float(found[1]) * 1000)

    memory = {name: number(f"fb memory usage.{name}") for name in ("total", "reserved", "used", "free")}
    total, used, free, reserved = (memory[name] for name in ("total", "used", "free", "reserved"))
    name, uuid = first("product name"), first("gpu uuid")
    if name is not None and uuid is not None and total is not None:
        # The compute capability is not printed.
        yield Gpu(index, name, uuid, total * 2**20, None, first("pci.bus id") or bus)
    if total is not None and used is not None and free is not None:
        yield GpuMemory(
            index, total * 2**20, used * 2**20, free * 2**20, None if reserved is None else reserved * 2**20
        )
    mode = first("compute mode")
    yield GpuModes(
        index=index,
        persistence=yes("persistence mode"),
        mig=yes("mig mode.current"),
        compute_mode=None if mode is None else _COMPUTE_MODES.get(mode.lower()),
    )
    link = "pci.gpu link info"
    yield GpuPcie(
        index=index,
        generation=number(f"{link}.pcie generation.current"),
        generation_max=number(f"{link}.pcie generation.max"),
        generation_card=number(f"{link}.pcie generation.device max"),
        width=number(f"{link}.link width.current"),
        width_max=number(f"{link}.link width.max"),
        replays=number("pci.replays since reset"),
    )
    pages, rows, now, ever = "retired pages", "remapped rows", "ecc errors.volatile", "ecc errors.aggregate"
    yield GpuErrors(
        index=index,
        ecc=yes("ecc mode.current"),
        corrected=number(f"{now}.dram correctable", f"{now}.single bit.total"),
        uncorrected=number(f"{now}.dram uncorrectable", f"{now}.double bit.total"),
        uncorrected_ever=number(f"{ever}.dram uncorrectable", f"{ever}.double bit.total"),
        uncorrected_sram=number(f"{now}.sram uncorrectable", f"{now}.sram uncorrectable parity"),
        uncorrected_sram_ever=number(f"{ever}.sram uncorrectable", f"{ever}.sram uncorrectable parity"),
        remapped_corrected=number(f"{rows}.correctable error"),
        remapped_uncorrected=number(f"{rows}.uncorrectable error"),
        remap_pending=yes(f"{rows}.pending"),
        remap_failed=yes(f"{rows}.remapping failure occurred"),
        retired_single=number(f"{pages}.single bit ecc"),
        retired_double=number(f"{pages}.double bit ecc"),
        retired_pending=yes(f"{pages}.pending page blacklist", f"{pages}.pending"),
    )
    power = ("gpu power readings", "module power readings", "power readings")
    state = first("performance state")
    yield GpuClocks(
        index=index,
        sm_mhz=number("clocks.sm"),
        sm_max_mhz=number("max clocks.sm"),
        sm_application_mhz=number("applications clocks.graphics"),
        memory_mhz=number("clocks.memory"),
        memory_max_mhz=number("max clocks.memory"),
        throttle_bits=_throttle_bits(values),
        pstate=int(state[1:]) if state is not None and state[1:].isdigit() else None,
        temperature_c=number("temperature.gpu current temp"),
        temperature_slowdown_c=number("temperature.gpu slowdown temp"),
        power_mw=milliwatts(
            *(
                f"{each}.{key}"
                for each in power
                for key in ("power draw", "average power draw", "instantaneous power draw")
            )
        ),
        power_limit_mw=milliwatts(
            *(f"{each}.{key}" for each in power for key in ("current power limit", "power limit"))
        ),
        power_default_mw=milliwatts(*(f"{each}.default power limit" for each in power)),
    )


def _throttle_bits(values: Values) -> Optional[int]:
    told = False
    bits = 0
    for key, value in values.items():
        head, _, name = key.rpartition(".")
        # "HW Slowdown" is the parent of its own kinds.
        if head.split(".")[0] in ("clocks throttle reasons", "clocks event reasons") and name in _REASONS:
            told = True
            bits |= _REASONS[name] if value == "Active" else 0
    return bits if told else None
