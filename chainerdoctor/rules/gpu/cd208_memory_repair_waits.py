"""CD208: memory repair waits."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuErrors,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot


def waits(fact: GpuErrors) -> Optional[Tuple[str, str, str]]:
    """Rows of Ampere and later, pages of older cards."""
    if fact.remap_pending:
        return "row remap", "pending", "none pending"
    return ("page retirement", "pending", "none pending") if fact.retired_pending else None


@rule("CD208", Severity.ERROR, needs=(GpuErrors,), since="0.1")
def memory_repair_waits(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU has found faulty memory and waits for a reset to replace it.

    Why it hurts: until the reset the faulty cells stay in use, and another error there ends the job.

    How to mend it: reset the GPU when the node is idle (nvidia-smi --gpu-reset -i N), or restart the node.

    Source: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt; docs.nvidia.com/deploy/dynamic-page-retirement
    """
    yield from per_node(
        snapshot.all(GpuErrors),
        waits,
        "a repair of memory waits for a reset",
        "Run nvidia-smi --gpu-reset -i {gpus} when the node is idle, or restart the node.",
    )
