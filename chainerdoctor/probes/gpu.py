"""NVIDIA driver and GPUs through NVML."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.adapters import nvml
from chainerdoctor.facts import ABSENT, ERROR, Fact
from chainerdoctor.facts.gpu import Gpu, GpuDriver
from chainerdoctor.host import Host
from chainerdoctor.probes import NODE, Probe, Unseen


def gpus(host: Host) -> Iterator[Fact]:
    """Driver and devices; on a machine without a driver the true reason."""
    try:
        for fact in nvml.driver_and_gpus():
            assert isinstance(fact, Fact)
            yield fact
    except nvml.NvmlUnavailable as error:
        raise Unseen(ABSENT if error.absent else ERROR, str(error)) from None


PROBES = (Probe("gpus", NODE, 10.0, (GpuDriver, Gpu), gpus),)
