"""CD225: memory in use."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuMemory,
    GpuProcess,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot

_LEAST_BYTES = 2**30  # what drivers keep for themselves and do not report as reserved is below that
_SHARE = 0.02


def held(fact: GpuMemory) -> Optional[Tuple[str, str, str]]:
    """Used memory beside the total, if it is more than a driver takes for itself."""
    if fact.used_bytes <= max(_LEAST_BYTES, _SHARE * fact.total_bytes):
        return None
    return "memory in use", f"{fact.used_bytes / 2**30:.1f} of {fact.total_bytes / 2**30:.0f} GiB", "less than 1 GiB"


@rule("CD225", Severity.WARNING, needs=(GpuMemory,), since="0.1")
def memory_in_use(snapshot: Snapshot) -> Iterator[Finding]:
    """Memory of a GPU is in use before the run, and no process that can be seen explains it.

    Why it hurts: the run has less room than it seems and may end out of memory. Processes of another container are not
    listed, and processes that hang in the driver keep their memory.

    How to mend it: look on the host itself (nvidia-smi; fuser -v /dev/nvidiaN), then end what holds it or reset the GPU.
    """
    explained = {
        (s.node, s.fact.index) for s in snapshot.all(GpuProcess) if not s.fact.of_this_check or s.fact.graphics
    }
    ours = {(s.node, s.fact.index) for s in snapshot.all(GpuProcess) if s.fact.of_this_check}
    yield from per_node(
        [s for s in snapshot.all(GpuMemory) if (s.node, s.fact.index) not in explained | ours],
        held,
        "memory is in use, and no process that can be seen holds it",
        "Look on the host itself with nvidia-smi -i {gpus} and fuser -v /dev/nvidia*, then end what holds the memory.",
    )
