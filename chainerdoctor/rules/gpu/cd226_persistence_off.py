"""CD226: persistence off."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gpu import (
    GpuModes,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import everywhere
from chainerdoctor.snapshot import Snapshot


@rule("CD226", Severity.INFO, needs=(GpuModes,), since="0.1")
def persistence_off(snapshot: Snapshot) -> Iterator[Finding]:
    """Persistence mode is off: the driver unloads whenever nobody uses a GPU.

    Why it hurts: each start waits for the driver (seconds on machines with eight GPUs), and clock settings and counters are
    lost between runs.

    How to mend it: start NVIDIA's daemon on the host, systemctl enable --now nvidia-persistenced, or nvidia-smi -pm 1.

    Source: docs.nvidia.com/deploy/driver-persistence
    """
    yield from everywhere(
        snapshot.all(GpuModes),
        lambda fact: ("persistence mode", "off", "on") if fact.persistence is False else None,
        "persistence mode is off",
        "Run systemctl enable --now nvidia-persistenced on the host (or nvidia-smi -pm 1).",
    )
