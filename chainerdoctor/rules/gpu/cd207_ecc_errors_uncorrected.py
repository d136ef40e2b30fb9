"""CD207: ecc errors uncorrected."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuErrors,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot


def uncorrected(fact: GpuErrors) -> Optional[Tuple[str, str, str]]:
    """Errors of SRAM are within the total; they are told apart because a single one is enough for a replacement."""
    if fact.uncorrected_sram:
        return (
            "uncorrected errors",
            f"{fact.uncorrected or fact.uncorrected_sram}, {fact.uncorrected_sram} in SRAM",
            "0",
        )
    return ("uncorrected errors", str(fact.uncorrected), "0") if fact.uncorrected else None


@rule("CD207", Severity.ERROR, needs=(GpuErrors,), since="0.1")
def ecc_errors_uncorrected(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU has counted uncorrectable memory errors since its driver was loaded.

    Why it hurts: data were lost. A job on this GPU was killed, or its results are wrong, and it will happen again. One
    uncorrectable error in SRAM is enough to take the GPU out of service.

    How to mend it: drain the node, reset the GPU (nvidia-smi --gpu-reset -i N) and have it tested if the counter grows again.

    Source: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt
    """
    yield from per_node(
        snapshot.all(GpuErrors),
        uncorrected,
        "uncorrectable memory errors were counted",
        "Drain the node, then run nvidia-smi --gpu-reset -i {gpus}; have the GPU tested if the counter grows again.",
    )
