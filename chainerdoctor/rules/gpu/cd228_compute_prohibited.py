"""CD228: compute prohibited."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gpu import (
    GpuModes,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import everywhere
from chainerdoctor.snapshot import Snapshot


@rule("CD228", Severity.ERROR, needs=(GpuModes,), since="0.1")
def compute_prohibited(snapshot: Snapshot) -> Iterator[Finding]:
    """The compute mode of a GPU forbids compute processes.

    Why it hurts: every CUDA program fails on it ("all CUDA-capable devices are busy or unavailable").

    How to mend it: set the default mode as root: nvidia-smi -i N -c DEFAULT.

    Source: nvml.h, nvmlComputeMode_t.
    """
    yield from everywhere(
        snapshot.all(GpuModes),
        lambda fact: ("compute mode", "prohibited", "default") if fact.compute_mode == 2 else None,
        "the compute mode forbids compute processes",
        "Run nvidia-smi -i {gpus} -c DEFAULT as root.",
    )
