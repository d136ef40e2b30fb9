"""What the NVML adapter says about real cards, against nvidia-smi and nvidia-ml-py."""

import os
import shutil
import subprocess
import time

import pytest

from chainerdoctor.adapters.nvml_readings import Refusal
from chainerdoctor.instrument.gpu_sampler import GpuSampler


def test_identity_and_memory_agree_with_nvidia_ml_py(nvml, devices):
    """Proves that the adapter maps calls to names rightly on this driver: each value is read twice, by other code."""
    import pynvml

    text = lambda value: value.decode() if isinstance(value, bytes) else value  # noqa: E731
    for index, device in enumerate(devices):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        assert device.name() == text(pynvml.nvmlDeviceGetName(handle))
        assert device.uuid() == text(pynvml.nvmlDeviceGetUUID(handle))
        assert device.memory().total == pynvml.nvmlDeviceGetMemoryInfo(handle).total
        assert device.compute_capability() == tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle))
        assert device.bus_id() == text(pynvml.nvmlDeviceGetPciInfo(handle).busId)


def test_identity_agrees_with_nvidia_smi(nvml, devices):
    """Proves the same against NVIDIA's own program; only where it is installed (a simulated machine has none)."""
    if not shutil.which("nvidia-smi") or "CHAINERDOCTOR_SIM_PLAN" in os.environ:
        pytest.skip("nvidia-smi: not installed, or this is a simulated machine")
    query = "--query-gpu=name,uuid,memory.total,driver_version"
    lines = subprocess.run(
        ["nvidia-smi", query, "--format=csv,noheader,nounits"], capture_output=True, text=True
    ).stdout
    for device, line in zip(devices, lines.splitlines()):
        name, uuid, total_mib, driver = (part.strip() for part in line.split(","))
        assert (device.name(), device.uuid(), nvml.driver_version()) == (name, uuid, driver)
        assert abs(device.memory().total / 2**20 - float(total_mib)) <= 1


def test_every_reading_is_a_value_or_a_reason(devices):
    """Proves that no call of the adapter raises on this card: what it cannot tell is a Refusal with a reason."""
    plain = [
        "name",
        "uuid",
        "serial",
        "vbios_version",
        "bus_id",
        "compute_capability",
        "cpu_affinity",
        "numa_node",
        "memory",
        "bar1",
        "utilization_percent",
        "temperature_c",
        "temperature_slowdown_c",
        "temperature_memory_c",
        "throttle_bits",
        "power_mw",
        "power_limit_mw",
        "power_default_mw",
        "pstate",
        "persistence_mode",
        "compute_mode",
        "ecc_mode",
        "remapped_rows",
        "retired_pages_pending",
        "mig_mode",
        "mig_devices",
        "pcie_generation",
        "pcie_generation_max",
        "pcie_generation_card",
        "pcie_width",
        "pcie_width_max",
        "pcie_replays",
        "nvlink_count",
        "fabric",
        "processes",
        "graphics_processes",
    ]
    for device in devices:
        readings = {name: getattr(device, name)() for name in plain}
        readings.update({f"clock {kind}": device.clock_mhz(kind) for kind in ("graphics", "sm", "memory", "video")})
        readings.update({f"ecc {e}": device.ecc_errors(uncorrected=True, ever=e) for e in (False, True)})
        readings["retired"] = device.retired_pages(double_bit=True)
        refused = {name: reading for name, reading in readings.items() if isinstance(reading, Refusal)}
        assert all(reading.reason and reading.detail for reading in refused.values())
        assert not {"name", "uuid", "memory", "temperature_c"} & set(refused), refused


def test_topology_is_symmetric(devices):
    """Proves that pairs are asked in both directions alike."""
    for a in devices:
        for b in devices:
            assert a.topology(b) == b.topology(a)


def test_memory_follows_an_allocation(cupy, devices):
    """Proves that the adapter reads this GPU and not another: 256 MiB that CuPy takes appear on it, and go again."""
    wanted = cupy.cuda.Device(0).pci_bus_id.lower()
    device = next(d for d in devices if d.bus_id().lower().endswith(wanted[-10:]))
    cupy.cuda.Device(0).use()
    cupy.zeros(1)  # the context's own memory comes first
    before = device.memory().used
    memory = cupy.cuda.runtime.malloc(256 << 20)
    assert device.memory().used - before == pytest.approx(256 << 20, rel=0.1)
    cupy.cuda.runtime.free(memory)
    assert device.memory().used - before < 64 << 20


def test_the_sampler_sees_a_short_allocation(cupy, devices):
    """Proves that 1 kHz sampling catches memory that is held for 50 ms."""
    wanted = cupy.cuda.Device(0).pci_bus_id.lower()
    index = next(d.index for d in devices if d.bus_id().lower().endswith(wanted[-10:]))
    cupy.zeros(1)
    with GpuSampler([index]) as sampler:
        time.sleep(0.1)
        memory = cupy.cuda.runtime.malloc(256 << 20)
        time.sleep(0.05)
        cupy.cuda.runtime.free(memory)
        time.sleep(0.1)
    used = [sample.used_bytes[0] for sample in sampler.samples()]
    assert max(used) - min(used) >= 200 << 20
    assert used[-1] - min(used) < 64 << 20
