"""CD211: gpu throttled."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuClocks,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.throttling import harmful_reasons


def slowed(fact: GpuClocks) -> Optional[Tuple[str, str, str]]:
    """The harmful reasons, with clock and temperature where they are known."""
    reasons = harmful_reasons(fact.throttle_bits or 0)
    if not reasons:
        return None
    known = [] if fact.sm_mhz is None else [f"{fact.sm_mhz} MHz"]
    known += [] if fact.temperature_c is None else [f"{fact.temperature_c} °C"]
    wanted = "no slowdown" if fact.sm_max_mhz is None else f"no slowdown, up to {fact.sm_max_mhz} MHz"
    return ", ".join(reasons), " at ".join(known) or f"0x{fact.throttle_bits or 0:x}", wanted


@rule("CD211", Severity.WARNING, needs=(GpuClocks,), since="0.1")
def gpu_throttled(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU slows its clocks down for heat or power.

    Why it hurts: the slowest rank sets the pace of every all-reduce, so one hot card slows the whole job.

    How to mend it: check fans, air flow and the power supply of that machine; watch nvidia-smi -q -d
    PERFORMANCE,TEMPERATURE -i N while a job runs.

    Source: nvml.h, nvmlClocksEventReasons. Idleness, application clocks and the software power cap, which a card under full
    load reaches by design, are no complaint.
    """
    yield from per_node(
        snapshot.all(GpuClocks),
        slowed,
        "clocks are slowed down for heat or power",
        "Check cooling and power supply, then watch nvidia-smi -q -d PERFORMANCE,TEMPERATURE -i {gpus} under load.",
    )
