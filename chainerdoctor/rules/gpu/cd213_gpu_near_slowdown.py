"""CD213: gpu near slowdown."""

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

_MARGIN_C = 5


def hot(fact: GpuClocks) -> Optional[Tuple[str, str, str]]:
    """Degrees beside the threshold. A card that already slows down is told by CD211."""
    if fact.temperature_c is None or fact.temperature_slowdown_c is None or harmful_reasons(fact.throttle_bits or 0):
        return None
    if fact.temperature_c < fact.temperature_slowdown_c - _MARGIN_C:
        return None
    return "temperature", f"{fact.temperature_c} °C", f"below {fact.temperature_slowdown_c - _MARGIN_C} °C"


@rule("CD213", Severity.WARNING, needs=(GpuClocks,), since="0.1")
def gpu_near_slowdown(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU is within a few degrees of the temperature at which its hardware slows down.

    Why it hurts: before the run it is already as hot as others under full load; it will slow down in training.

    How to mend it: check fans and air flow, and look for somebody else's load on this GPU: nvidia-smi -i N.
    """
    yield from per_node(
        snapshot.all(GpuClocks),
        hot,
        "the GPU is close to the temperature at which it slows down",
        "Check fans and air flow, and look for other load with nvidia-smi -i {gpus}.",
    )
