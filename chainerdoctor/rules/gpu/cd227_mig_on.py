"""CD227: mig on."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gpu import (
    GpuModes,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import everywhere
from chainerdoctor.snapshot import Snapshot


@rule("CD227", Severity.WARNING, needs=(GpuModes,), since="0.1")
def mig_on(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU is divided into instances (MIG).

    Why it hurts: a process sees one instance only, there is no peer access between instances, and a rank that counts on the
    whole card gets a slice of it or no device at all.

    How to mend it: switch MIG off for training on several GPUs (nvidia-smi -i N -mig 0, as root), or run one rank in one
    instance.

    Source: NVIDIA MIG user guide, "Application considerations".
    """
    yield from everywhere(
        snapshot.all(GpuModes),
        lambda fact: ("MIG", "on", "off") if fact.mig else None,
        "the GPU is divided into MIG instances",
        "Run nvidia-smi -i {gpus} -mig 0 as root and reset the GPU, or train on one instance only.",
    )
