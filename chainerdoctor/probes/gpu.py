"""NVIDIA driver and GPUs through NVML: who they are, how they are, and how they reach each other.

All of it is one probe, since a driver that hangs hangs everywhere. Each device is asked by a thread of its own: a call
that blocks costs its patience once, whatever the number of devices, and loses that device's stage only.
"""

from __future__ import annotations

import contextlib
import subprocess
from functools import partial
from typing import Callable, Iterator, Tuple, Type

from chainerdoctor.adapters.nvml import Device, Nvml, open_nvml
from chainerdoctor.adapters.nvml_readings import Refusal
from chainerdoctor.facts import ABSENT, ERROR, TIMEOUT, UNSUPPORTED, Fact, Missing
from chainerdoctor.facts.fabric import GpuPair, NvLink, NvSwitchFabric
from chainerdoctor.facts.gpu import (
    Gpu,
    GpuClocks,
    GpuDriver,
    GpuErrors,
    GpuLost,
    GpuMemory,
    GpuModes,
    GpuPcie,
    GpuProcess,
)
from chainerdoctor.host import Host
from chainerdoctor.probes import NODE, Probe, Unseen
from chainerdoctor.probes.gpu_asking import Asker, Questions
from chainerdoctor.probes.gpu_smi import facts_of

#: Seconds that a stage may take on one device. Real cards answer all of it in well under one.
PATIENCE_S = 3.0
#: Seconds for NVML to start: without persistence mode the driver is loaded then, about a second for each card.
START_PATIENCE_S = 10.0
_SMI_PATIENCE_S = 10.0


def gpus(host: Host) -> Iterator[Fact]:
    """One :class:`GpuDriver`, then every device's facts, stage by stage; without a driver the true reason."""
    questions = Questions(PATIENCE_S)
    nvml = questions.one("nvmlInit", open_nvml, START_PATIENCE_S)
    if isinstance(nvml, Refusal):
        prefix = "" if nvml.call.startswith("import") else "NVML: "
        yield from _by_nvidia_smi(host, nvml.reason, f"{prefix}{nvml.detail}")
        return
    driver = questions.one("nvmlSystemGetDriverVersion", lambda: _driver(nvml))
    if isinstance(driver, Refusal):
        raise Unseen(driver.reason if driver.reason == TIMEOUT else ERROR, f"NVML: {driver.detail} ({driver.call})")
    yield driver
    devices = []
    for index in range(driver.gpus):
        device = questions.one("nvmlDeviceGetHandleByIndex", partial(nvml.device, index))
        if isinstance(device, Refusal):
            questions.refuse(device, index, "Gpu")
        else:
            devices.append(device)
    for kind, stage in _STAGES:
        yield from questions.each(devices, stage, kind)
    yield from questions.each(devices, lambda ask: _processes(ask, host), GpuProcess)
    yield from questions.each(devices, lambda ask: _pairs(ask, devices), GpuPair)
    for index, refusal in sorted(questions.lost.items()):
        yield GpuLost(index, refusal.call, refusal.detail)
    yield from (Missing("gpus", *why, kinds) for why, kinds in questions.refusals())
    # NVML is not shut down: that could block, too, and the process ends here.


def _by_nvidia_smi(host: Host, reason: str, detail: str) -> Iterator[Fact]:
    """Where NVML cannot be loaded the program beside the driver may still answer; a driver that hangs would hang it, too.

    Raises:
        Unseen: it does not answer either; with NVML's reason, which is the first one.
    """
    said: list[Fact] = []
    if reason == ABSENT:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            said = list(facts_of(host.run(["nvidia-smi", "-q"], _SMI_PATIENCE_S).out))
    if not said:
        raise Unseen(reason, detail)
    yield from said
    kinds = tuple(kind.__name__ for kind in _YIELDS if kind not in {type(fact) for fact in said})
    yield Missing("gpus", UNSUPPORTED, f"{detail}; nvidia-smi -q was read instead", kinds)


def _driver(nvml: Nvml) -> GpuDriver | Refusal:
    version, cuda, count = nvml.driver_version(), nvml.cuda_driver_version(), nvml.device_count()
    if isinstance(version, Refusal):
        return version
    if isinstance(cuda, Refusal):
        return cuda
    if isinstance(count, Refusal):
        return count
    return GpuDriver(version, (cuda // 1000, cuda % 1000 // 10), count)


def _identity(ask: Asker) -> Iterator[Fact]:
    device = ask.device
    name, uuid, memory, bus = (
        ask(device.name, Gpu),
        ask(device.uuid, Gpu),
        ask(device.memory, Gpu),
        ask(device.bus_id, Gpu),
    )
    capability = ask(device.compute_capability, Gpu)
    if name is not None and uuid is not None and memory is not None and bus is not None:
        yield Gpu(device.index, name, uuid, memory.total, capability, bus)


def _memory(ask: Asker) -> Iterator[Fact]:
    memory = ask(ask.device.memory, GpuMemory)
    if memory is not None:
        yield GpuMemory(ask.device.index, memory.total, memory.used, memory.free, memory.reserved)


def _modes(ask: Asker) -> Iterator[Fact]:
    device = ask.device
    mig = ask(device.mig_mode, GpuModes)
    yield GpuModes(
        index=device.index,
        persistence=ask(device.persistence_mode, GpuModes),
        mig=None if mig is None else mig.current,
        compute_mode=ask(device.compute_mode, GpuModes),
    )


def _pcie(ask: Asker) -> Iterator[Fact]:
    device = ask.device
    yield GpuPcie(
        index=device.index,
        generation=ask(device.pcie_generation, GpuPcie),
        generation_max=ask(device.pcie_generation_max, GpuPcie),
        generation_card=ask(device.pcie_generation_card, GpuPcie),
        width=ask(device.pcie_width, GpuPcie),
        width_max=ask(device.pcie_width_max, GpuPcie),
        replays=ask(device.pcie_replays, GpuPcie),
    )


def _errors(ask: Asker) -> Iterator[Fact]:
    device = ask.device
    mode = ask(device.ecc_mode, GpuErrors)
    rows = ask(device.remapped_rows, GpuErrors)
    yield GpuErrors(
        index=device.index,
        ecc=None if mode is None else mode.current,
        corrected=ask(lambda: device.ecc_errors(uncorrected=False, ever=False), GpuErrors),
        uncorrected=ask(lambda: device.ecc_errors(uncorrected=True, ever=False), GpuErrors),
        uncorrected_ever=ask(lambda: device.ecc_errors(uncorrected=True, ever=True), GpuErrors),
        uncorrected_sram=ask(lambda: device.ecc_uncorrected_sram(ever=False), GpuErrors),
        uncorrected_sram_ever=ask(lambda: device.ecc_uncorrected_sram(ever=True), GpuErrors),
        remapped_corrected=None if rows is None else rows.corrected,
        remapped_uncorrected=None if rows is None else rows.uncorrected,
        remap_pending=None if rows is None else rows.pending,
        remap_failed=None if rows is None else rows.failed,
        retired_single=ask(lambda: device.retired_pages(double_bit=False), GpuErrors),
        retired_double=ask(lambda: device.retired_pages(double_bit=True), GpuErrors),
        retired_pending=ask(device.retired_pages_pending, GpuErrors),
    )


def _clocks(ask: Asker) -> Iterator[Fact]:
    device = ask.device
    yield GpuClocks(
        index=device.index,
        sm_mhz=ask(lambda: device.clock_mhz("sm"), GpuClocks),
        sm_max_mhz=ask(lambda: device.clock_max_mhz("sm"), GpuClocks),
        sm_application_mhz=ask(lambda: device.clock_application_mhz("sm"), GpuClocks),
        memory_mhz=ask(lambda: device.clock_mhz("memory"), GpuClocks),
        memory_max_mhz=ask(lambda: device.clock_max_mhz("memory"), GpuClocks),
        throttle_bits=ask(device.throttle_bits, GpuClocks),
        pstate=ask(device.pstate, GpuClocks),
        temperature_c=ask(device.temperature_c, GpuClocks),
        temperature_slowdown_c=ask(device.temperature_slowdown_c, GpuClocks),
        power_mw=ask(device.power_mw, GpuClocks),
        power_limit_mw=ask(device.power_limit_mw, GpuClocks),
        power_default_mw=ask(device.power_default_mw, GpuClocks),
    )


def _links(ask: Asker) -> Iterator[Fact]:
    device = ask.device
    for link in range(ask(device.nvlink_count, NvLink) or 0):
        active = ask(partial(device.nvlink_active, link), NvLink)
        if active is None:
            continue
        yield NvLink(
            gpu=device.index,
            link=link,
            active=active,
            remote_bus_id=ask(partial(device.nvlink_remote_bus_id, link), NvLink) if active else None,
            replay_errors=ask(partial(device.nvlink_errors, link, "replay"), NvLink),
            recovery_errors=ask(partial(device.nvlink_errors, link, "recovery"), NvLink),
            crc_errors=ask(partial(device.nvlink_errors, link, "crc"), NvLink),
        )
    fabric = ask(device.fabric, NvSwitchFabric)
    if fabric is not None and fabric.state:  # 0: this card takes no part in such a fabric
        yield NvSwitchFabric(device.index, fabric.state, fabric.status)


def _processes(ask: Asker, host: Host) -> Iterator[Fact]:
    device = ask.device
    for graphics, read in ((False, device.processes), (True, device.graphics_processes)):
        for process in ask(read, GpuProcess) or ():
            name, own_user, of_this_check = _who(host, process.pid)
            yield GpuProcess(device.index, process.pid, process.used_bytes, graphics, name, own_user, of_this_check)


def _who(host: Host, pid: int) -> tuple[str | None, bool | None, bool]:
    """Name, whether it is ours, whether it belongs to this check. In a container the number is another's, or nobody's."""
    try:
        name = host.read(f"/proc/{pid}/comm").strip()
        command = host.read(f"/proc/{pid}/cmdline")
        owners = [_uid(host, f"/proc/{who}/status") for who in (pid, "self")]
    except OSError:
        return None, None, False
    same = None if None in owners else owners[0] == owners[1]
    return name, same, "chainerdoctor.launch.agent" in command


def _uid(host: Host, path: str) -> str | None:
    for line in host.read(path).splitlines():
        if line.startswith("Uid:"):
            return line.split()[1]
    return None


def _pairs(ask: Asker, devices: list[Device]) -> Iterator[Fact]:
    device = ask.device
    for peer in devices:
        if peer.index != device.index:
            yield GpuPair(
                gpu=device.index,
                peer=peer.index,
                path=ask(partial(device.topology, peer), GpuPair),
                read=ask(partial(device.peer_access, peer, "read"), GpuPair),
                write=ask(partial(device.peer_access, peer, "write"), GpuPair),
            )


_STAGES: Tuple[Tuple[Type[Fact], Callable[[Asker], Iterator[Fact]]], ...] = (
    (Gpu, _identity),
    (GpuMemory, _memory),
    (GpuModes, _modes),
    (GpuPcie, _pcie),
    (GpuErrors, _errors),
    (GpuClocks, _clocks),
    (NvLink, _links),
)
_YIELDS = (
    GpuDriver, Gpu, GpuMemory, GpuModes, GpuPcie, GpuErrors, GpuClocks, NvLink, NvSwitchFabric, GpuProcess, GpuPair,
)  # fmt: skip
PROBES = (Probe("gpus", NODE, 30.0, _YIELDS, gpus),)
