"""CD209: memory beyond repair."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuErrors,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.xid import RETIRED_PAGES_FOR_REPLACEMENT


def beyond(fact: GpuErrors) -> Optional[Tuple[str, str, str]]:
    """A failed remap, or so many retired pages (the one that waits counts) that the card is exchanged."""
    if fact.remap_failed:
        return "row remap", "failed", "no failure"
    pages = (fact.retired_single or 0) + (fact.retired_double or 0) + bool(fact.retired_pending)
    if pages >= RETIRED_PAGES_FOR_REPLACEMENT:
        return "retired pages", str(pages), f"fewer than {RETIRED_PAGES_FOR_REPLACEMENT}"
    return None


@rule("CD209", Severity.ERROR, needs=(GpuErrors,), since="0.1")
def memory_beyond_repair(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU can no longer repair its memory: a row remap has failed, or too many pages are retired.

    Why it hurts: the next error cannot be replaced and ends the job; NVIDIA exchanges such GPUs.

    How to mend it: take the GPU out of use and ask for a replacement with the output of nvidia-bug-report.sh.

    Source: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt; docs.nvidia.com/deploy/dynamic-page-retirement
    """
    yield from per_node(
        snapshot.all(GpuErrors),
        beyond,
        "memory can no longer be repaired",
        "Take GPU {gpus} out of use and ask for a replacement with the output of nvidia-bug-report.sh.",
    )
