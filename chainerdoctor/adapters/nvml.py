"""NVML through nvidia-ml-py: the only importer of ``pynvml``.

Every reading is either the value or a :class:`Refusal` that says which call failed and why, in the words of
:mod:`chainerdoctor.facts`. Nothing is filled in: a card that cannot tell its fan speed gives a refusal, not a 0. One
method is one NVML call (two where NVML has an older form of it), so one broken call costs one reading.

NVML calls can block or crash with a sick driver. This module has no deadline of its own: call it in a process that may
be lost.
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Callable, Dict, List, Optional, Tuple, TypeVar, Union

from chainerdoctor.adapters.nvml_readings import (
    Calls,
    EccMode,
    Fabric,
    Memory,
    MigDevice,
    Process,
    Refusal,
    RemappedRows,
)
from chainerdoctor.facts import ABSENT, ERROR, UNSUPPORTED

T = TypeVar("T")

_TOPOLOGY = {0: "SELF", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SYS"}
_P2P_STATUS = {
    0: "ok",
    1: "chipset not supported",
    2: "GPU not supported",
    3: "topology not supported",
    4: "disabled by registry key",
    5: "not supported",
}
#: What peer access can be asked for, by NVML's number (nvmlGpuP2PCapsIndex_t).
P2P_CAPABILITIES = {"read": 0, "write": 1, "nvlink": 2, "atomics": 3, "pci": 4}
_FIELD_MEMORY_TEMPERATURE = 82
_DRAM, _SRAM = 2, 7
#: nvmlMemory_v2_t (version, total, reserved, free, used) and nvmlMemory_t (total, free, used). Reading the bytes takes a
#: seventh of the time of nvidia-ml-py's attributes, each of which runs Python code.
_MEMORY_V2 = struct.Struct("@IQQQQ").unpack_from
_MEMORY_V1 = struct.Struct("@QQQ").unpack_from
_MOST_CPU_WORDS = 64  # 4096 CPUs


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class Device:
    """One GPU. Every method returns its value or a Refusal; units are in the names."""

    def __init__(self, calls: Calls, index: int, handle: Any) -> None:
        self.index = index
        #: The call that is being made, for whoever gave up waiting for it.
        self.calling = ""
        self._calls = calls
        self._handle = handle
        pynvml = calls.pynvml
        # looked up once: the sampler reads memory a thousand times a second
        self._memory_info = pynvml.nvmlDeviceGetMemoryInfo
        self._error = pynvml.NVMLError
        self._memory_v2 = getattr(pynvml, "nvmlMemory_v2", None)

    def _read(self, call: str, convert: Callable[[Any], T], *arguments: Any) -> Union[T, Refusal]:
        self.calling = call
        return self._calls.read(call, convert, self._handle, *arguments)

    def name(self) -> Union[str, Refusal]:
        """Product name."""
        return self._read("nvmlDeviceGetName", _text)

    def uuid(self) -> Union[str, Refusal]:
        """``GPU-…``."""
        return self._read("nvmlDeviceGetUUID", _text)

    def serial(self) -> Union[str, Refusal]:
        """Serial number of the board."""
        return self._read("nvmlDeviceGetSerial", _text)

    def vbios_version(self) -> Union[str, Refusal]:
        """VBIOS version."""
        return self._read("nvmlDeviceGetVbiosVersion", _text)

    def bus_id(self) -> Union[str, Refusal]:
        """PCI address, ``domain:bus:device.function``, domain of eight digits."""
        return self._read("nvmlDeviceGetPciInfo", lambda pci: _text(pci.busId))

    def compute_capability(self) -> Union[Tuple[int, int], Refusal]:
        """(major, minor)."""
        return self._read("nvmlDeviceGetCudaComputeCapability", lambda pair: (int(pair[0]), int(pair[1])))

    def cpu_affinity(self) -> Union[Tuple[int, ...], Refusal]:
        """CPUs near the GPU, ascending."""
        return self._read("nvmlDeviceGetCpuAffinity", _bits, _MOST_CPU_WORDS)

    def numa_node(self) -> Union[int, Refusal]:
        """NUMA node of the GPU."""
        return self._read("nvmlDeviceGetNumaNodeId", int)

    def memory(self) -> Union[Memory, Refusal]:
        """Memory now. Prefers the call's version 2; the old form where the driver or binding has only that."""
        try:
            if self._memory_v2 is not None:
                _, total, reserved, free, used = _MEMORY_V2(self._memory_info(self._handle, self._memory_v2))
                return Memory(total, used, free, reserved)
            total, free, used = _MEMORY_V1(self._memory_info(self._handle))
            return Memory(total, used, free, None)
        except self._error as error:
            refusal = self._calls.refusal("nvmlDeviceGetMemoryInfo", error)
            if self._memory_v2 is None or refusal.code not in (13, 25):  # function not found, version mismatch
                return refusal
            self._memory_v2 = None
            return self.memory()

    def bar1(self) -> Union[Memory, Refusal]:
        """The BAR1 window."""
        return self._read(
            "nvmlDeviceGetBAR1MemoryInfo",
            lambda info: Memory(int(info.bar1Total), int(info.bar1Used), int(info.bar1Free), None),
        )

    def utilization_percent(self) -> Union[Tuple[int, int], Refusal]:
        """(kernels ran, memory was busy): share of the last sampling period."""
        return self._read("nvmlDeviceGetUtilizationRates", lambda rates: (int(rates.gpu), int(rates.memory)))

    def temperature_c(self) -> Union[int, Refusal]:
        """GPU core."""
        return self._read("nvmlDeviceGetTemperature", int, 0)

    def temperature_slowdown_c(self) -> Union[int, Refusal]:
        """Core temperature at which the hardware slows down."""
        return self._read("nvmlDeviceGetTemperatureThreshold", int, 1)

    def temperature_memory_c(self) -> Union[int, Refusal]:
        """HBM."""
        return self._field(_FIELD_MEMORY_TEMPERATURE)

    def clock_mhz(self, kind: str) -> Union[int, Refusal]:
        """Clock now; ``kind`` is graphics, sm, memory or video."""
        return self._read("nvmlDeviceGetClockInfo", int, _CLOCKS[kind])

    def clock_max_mhz(self, kind: str) -> Union[int, Refusal]:
        """Highest clock of the card."""
        return self._read("nvmlDeviceGetMaxClockInfo", int, _CLOCKS[kind])

    def clock_application_mhz(self, kind: str) -> Union[int, Refusal]:
        """Application clock that is set."""
        return self._read("nvmlDeviceGetApplicationsClock", int, _CLOCKS[kind])

    def throttle_bits(self) -> Union[int, Refusal]:
        """Reasons for which clocks are lowered (nvmlClocksEventReasons)."""
        return self._read("nvmlDeviceGetCurrentClocksThrottleReasons", int)

    def power_mw(self) -> Union[int, Refusal]:
        """Power drawn."""
        return self._read("nvmlDeviceGetPowerUsage", int)

    def power_limit_mw(self) -> Union[int, Refusal]:
        """Limit that is enforced."""
        return self._read("nvmlDeviceGetEnforcedPowerLimit", int)

    def power_default_mw(self) -> Union[int, Refusal]:
        """The card's default limit."""
        return self._read("nvmlDeviceGetPowerManagementDefaultLimit", int)

    def pstate(self) -> Union[int, Refusal]:
        """Performance state, 0 the fastest."""
        return self._read("nvmlDeviceGetPerformanceState", int)

    def persistence_mode(self) -> Union[bool, Refusal]:
        """Whether the driver stays loaded without a user."""
        return self._read("nvmlDeviceGetPersistenceMode", bool)

    def compute_mode(self) -> Union[int, Refusal]:
        """0 default, 2 prohibited, 3 one process."""
        return self._read("nvmlDeviceGetComputeMode", int)

    def ecc_mode(self) -> Union[EccMode, Refusal]:
        """Whether ECC is on."""
        return self._read("nvmlDeviceGetEccMode", lambda pair: EccMode(bool(pair[0]), bool(pair[1])))

    def ecc_errors(self, uncorrected: bool, ever: bool) -> Union[int, Refusal]:
        """Errors in all memories since the driver was loaded, or over the card's life."""
        return self._read("nvmlDeviceGetTotalEccErrors", int, int(uncorrected), int(ever))

    def ecc_uncorrected_sram(self, ever: bool) -> Union[int, Refusal]:
        """Uncorrected errors in SRAM."""
        return self._read("nvmlDeviceGetMemoryErrorCounter", int, 1, int(ever), _SRAM)

    def ecc_uncorrected_dram(self, ever: bool) -> Union[int, Refusal]:
        """Uncorrected errors in DRAM."""
        return self._read("nvmlDeviceGetMemoryErrorCounter", int, 1, int(ever), _DRAM)

    def remapped_rows(self) -> Union[RemappedRows, Refusal]:
        """Row remaps (Ampere and later)."""
        return self._read(
            "nvmlDeviceGetRemappedRows",
            lambda rows: RemappedRows(int(rows[0]), int(rows[1]), bool(rows[2]), bool(rows[3])),
        )

    def retired_pages(self, double_bit: bool) -> Union[int, Refusal]:
        """Number of retired pages by cause (cards before Ampere)."""
        return self._read("nvmlDeviceGetRetiredPages", len, int(double_bit))

    def retired_pages_pending(self) -> Union[bool, Refusal]:
        """Whether a page waits for a reset to be retired."""
        return self._read("nvmlDeviceGetRetiredPagesPendingStatus", bool)

    def mig_mode(self) -> Union[EccMode, Refusal]:
        """Whether multi-instance GPU is on, now and after the next reset."""
        return self._read("nvmlDeviceGetMigMode", lambda pair: EccMode(bool(pair[0]), bool(pair[1])))

    def mig_devices(self) -> Union[Tuple[MigDevice, ...], Refusal]:
        """MIG devices that are set up; the first call that fails (other than for "no more") is the refusal."""
        most = self._read("nvmlDeviceGetMaxMigDeviceCount", int)
        found: List[MigDevice] = []
        for index in range(0 if isinstance(most, Refusal) else most):
            handle = self._read("nvmlDeviceGetMigDeviceHandleByIndex", lambda handle: handle, index)
            if isinstance(handle, Refusal):
                if handle.code == 6:  # not found: slots may be empty
                    continue
                return handle
            uuid = self._calls.read("nvmlDeviceGetUUID", _text, handle)
            memory = self._calls.read("nvmlDeviceGetMemoryInfo", lambda m: (int(m.total), int(m.used)), handle)
            if isinstance(uuid, Refusal):
                return uuid
            if isinstance(memory, Refusal):
                return memory
            found.append(MigDevice(uuid, *memory))
        return most if isinstance(most, Refusal) else tuple(found)

    def pcie_generation(self) -> Union[int, Refusal]:
        """PCIe generation now (idle cards lower it)."""
        return self._read("nvmlDeviceGetCurrPcieLinkGeneration", int)

    def pcie_generation_max(self) -> Union[int, Refusal]:
        """Highest generation that card and slot allow together."""
        return self._read("nvmlDeviceGetMaxPcieLinkGeneration", int)

    def pcie_generation_card(self) -> Union[int, Refusal]:
        """Highest generation of the card alone."""
        return self._read("nvmlDeviceGetGpuMaxPcieLinkGeneration", int)

    def pcie_width(self) -> Union[int, Refusal]:
        """PCIe lanes now."""
        return self._read("nvmlDeviceGetCurrPcieLinkWidth", int)

    def pcie_width_max(self) -> Union[int, Refusal]:
        """Most lanes that card and slot allow together."""
        return self._read("nvmlDeviceGetMaxPcieLinkWidth", int)

    def pcie_replays(self) -> Union[int, Refusal]:
        """PCIe packets that were sent again."""
        return self._read("nvmlDeviceGetPcieReplayCounter", int)

    def nvlink_count(self) -> Union[int, Refusal]:
        """Number of NVLinks of the card, down ones included."""
        return self._field(91)

    def nvlink_active(self, link: int) -> Union[bool, Refusal]:
        """Whether a link is up."""
        return self._read("nvmlDeviceGetNvLinkState", bool, link)

    def nvlink_remote_bus_id(self, link: int) -> Union[str, Refusal]:
        """PCI address of what a link leads to (a GPU or an NVSwitch)."""
        return self._read("nvmlDeviceGetNvLinkRemotePciInfo", lambda pci: _text(pci.busId), link)

    def nvlink_errors(self, link: int, kind: str) -> Union[int, Refusal]:
        """Errors of a link since the driver was loaded; ``kind`` is replay, recovery or crc."""
        counter = {"replay": 0, "recovery": 1, "crc": 2}[kind]
        return self._read("nvmlDeviceGetNvLinkErrorCounter", int, link, counter)

    def fabric(self) -> Union[Fabric, Refusal]:
        """Registration with the NVSwitch fabric (Hopper and later)."""
        structure = getattr(self._calls.pynvml, "c_nvmlGpuFabricInfoV_t", None)
        if structure is None:
            return Refusal("nvmlDeviceGetGpuFabricInfoV", UNSUPPORTED, "this version of nvidia-ml-py has no such call")
        info = structure()
        done = self._read("nvmlDeviceGetGpuFabricInfoV", lambda _: None, ctypes.byref(info))
        return done if isinstance(done, Refusal) else Fabric(int(info.state), int(info.status))

    def processes(self) -> Union[Tuple[Process, ...], Refusal]:
        """Compute processes, in NVML's order."""
        return self._read(
            "nvmlDeviceGetComputeRunningProcesses",
            lambda found: tuple(Process(int(p.pid), _optional(p.usedGpuMemory)) for p in found),
        )

    def graphics_processes(self) -> Union[Tuple[Process, ...], Refusal]:
        """Graphics processes, in NVML's order."""
        return self._read(
            "nvmlDeviceGetGraphicsRunningProcesses",
            lambda found: tuple(Process(int(p.pid), _optional(p.usedGpuMemory)) for p in found),
        )

    def topology(self, other: Device) -> Union[str, Refusal]:
        """The nearest thing that the two cards share, by nvidia-smi's names (PIX PXB PHB NODE SYS; SELF)."""
        return self._read(
            "nvmlDeviceGetTopologyCommonAncestor", lambda level: _TOPOLOGY.get(int(level), str(level)), other._handle
        )

    def peer_access(self, other: Device, capability: str) -> Union[str, Refusal]:
        """ "ok" or why not; ``capability`` is one of P2P_CAPABILITIES."""
        return self._read(
            "nvmlDeviceGetP2PStatus",
            lambda status: _P2P_STATUS.get(int(status), f"status {status}"),
            other._handle,
            P2P_CAPABILITIES[capability],
        )

    def _field(self, number: int) -> Union[int, Refusal]:
        got = self._read("nvmlDeviceGetFieldValues", lambda fields: fields[0], [number])
        if isinstance(got, Refusal):
            return got
        if got.nvmlReturn:
            return self._calls.refusal(f"nvmlDeviceGetFieldValues({number})", self._error(got.nvmlReturn))
        # NVML's value types: 1 unsigned int, 2 unsigned long, 3 unsigned long long, 4 signed long long, 5 signed int
        member = {1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal"}.get(int(got.valueType))
        if member is None or not hasattr(got.value, member):
            return Refusal(f"nvmlDeviceGetFieldValues({number})", ERROR, f"value type {got.valueType} is not known")
        return int(getattr(got.value, member))


_CLOCKS: Dict[str, int] = {"graphics": 0, "sm": 1, "memory": 2, "video": 3}


def _optional(value: Any) -> Optional[int]:
    return None if value is None else int(value)


def _bits(words: Any) -> Tuple[int, ...]:
    width = 8 * ctypes.sizeof(ctypes.c_ulong)
    return tuple(at * width + bit for at, word in enumerate(words) for bit in range(width) if int(word) >> bit & 1)


class Nvml:
    """NVML, started. Use ``open_nvml``; close it, or use it in a ``with`` statement."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def __enter__(self) -> Nvml:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> Optional[Refusal]:
        """End the use of NVML; a refusal if NVML would not."""
        return self._calls.read("nvmlShutdown", lambda _: None)

    def driver_version(self) -> Union[str, Refusal]:
        """Version of the driver."""
        return self._calls.read("nvmlSystemGetDriverVersion", _text)

    def nvml_version(self) -> Union[str, Refusal]:
        """Version of the NVML library."""
        return self._calls.read("nvmlSystemGetNVMLVersion", _text)

    def cuda_driver_version(self) -> Union[int, Refusal]:
        """Newest CUDA that the driver supports, major * 1000 + minor * 10."""
        return self._calls.read("nvmlSystemGetCudaDriverVersion", int)

    def device_count(self) -> Union[int, Refusal]:
        """Number of GPUs that the driver shows to this process."""
        return self._calls.read("nvmlDeviceGetCount", int)

    def device(self, index: int) -> Union[Device, Refusal]:
        """A GPU by NVML's index (PCI order; CUDA_VISIBLE_DEVICES plays no part)."""
        return self._calls.read("nvmlDeviceGetHandleByIndex", lambda handle: Device(self._calls, index, handle), index)

    def process_name(self, pid: int) -> Union[str, Refusal]:
        """Name of a process that NVML listed."""
        return self._calls.read("nvmlSystemGetProcessName", _text, pid)


def open_nvml() -> Union[Nvml, Refusal]:
    """Start NVML. ABSENT without a driver's library or without nvidia-ml-py."""
    try:
        import pynvml
    except ImportError as error:
        return Refusal("import pynvml", ABSENT, f"nvidia-ml-py is not installed: {error}")
    calls = Calls(pynvml)
    started = calls.read("nvmlInit", lambda _: None)
    return started if isinstance(started, Refusal) else Nvml(calls)
