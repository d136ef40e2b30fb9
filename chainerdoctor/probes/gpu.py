"""NVIDIA driver and GPUs through NVML."""

from __future__ import annotations

from typing import Iterator, TypeVar, Union

from chainerdoctor.adapters.nvml import Nvml, open_nvml
from chainerdoctor.adapters.nvml_readings import Refusal
from chainerdoctor.facts import ERROR, UNSUPPORTED, Fact
from chainerdoctor.facts.gpu import Gpu, GpuDriver
from chainerdoctor.host import Host
from chainerdoctor.probes import NODE, Probe, Unseen

T = TypeVar("T")


def started() -> Nvml:
    """NVML, to be used in a ``with`` statement.

    Raises:
        Unseen: there is no driver (or no nvidia-ml-py), or it does not answer.
    """
    nvml = open_nvml()
    if isinstance(nvml, Refusal):
        prefix = "" if nvml.call.startswith("import") else "NVML: "
        raise Unseen(nvml.reason, f"{prefix}{nvml.detail}")
    return nvml


def wanted(reading: Union[T, Refusal]) -> T:
    """The value.

    Raises:
        Unseen: the call was refused.
    """
    if isinstance(reading, Refusal):
        raise Unseen(ERROR, f"NVML: {reading.detail} ({reading.call})")
    return reading


def gpus(host: Host) -> Iterator[Fact]:
    """One :class:`GpuDriver`, then one :class:`Gpu` for each device; without a driver the true reason."""
    with started() as nvml:
        cuda = wanted(nvml.cuda_driver_version())
        count = wanted(nvml.device_count())
        yield GpuDriver(wanted(nvml.driver_version()), (cuda // 1000, cuda % 1000 // 10), count)
        for index in range(count):
            device = wanted(nvml.device(index))
            capability = device.compute_capability()
            unsupported = isinstance(capability, Refusal) and capability.reason == UNSUPPORTED
            yield Gpu(
                index=index,
                name=wanted(device.name()),
                uuid=wanted(device.uuid()),
                memory_bytes=wanted(device.memory()).total,
                compute_capability=None if unsupported else wanted(capability),
                pci_bus_id=wanted(device.bus_id()),
            )


PROBES = (Probe("gpus", NODE, 10.0, (GpuDriver, Gpu), gpus),)
