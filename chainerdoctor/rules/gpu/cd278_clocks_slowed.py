"""CD278: clocks slowed."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.log import LoggedGpu
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.smi_logged import per_gpu
from chainerdoctor.snapshot import Snapshot


@rule("CD278", Severity.WARNING, needs=(LoggedGpu,), since="0.1")
def clocks_slowed(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU slows its clocks down for heat or power.

    Why it hurts: the slowest rank sets the pace of every all-reduce.

    How to mend it: check fans, air flow and the power supply; read nvidia-smi -q -d PERFORMANCE,TEMPERATURE
    while the job runs.

    Source: nvidia-smi -h, CLOCKS EVENT REASONS
    """

    def slowed(values: Dict[str, str]) -> List[str]:
        return [
            key
            for key, value in values.items()
            if value.lower() == "active"
            and key.replace("_", " ").startswith(("clocks event reasons", "clocks throttle reasons"))
            and any(word in key.replace("_", " ") for word in ("hw slowdown", "thermal slowdown", "power brake"))
        ]

    yield from per_gpu(
        snapshot,
        slowed,
        "clocks are slowed down",
        "Check cooling and power supply; read nvidia-smi -q -d PERFORMANCE,TEMPERATURE under load.",
        "Not Active",
    )
