"""CD273: memory repair pending."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LoggedGpu
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.smi_logged import per_gpu, says_yes
from chainerdoctor.snapshot import Snapshot


@rule("CD273", Severity.WARNING, needs=(LoggedGpu,), since="0.1")
def memory_repair_pending(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU has found faulty memory and waits for a reset to replace it.

    Why it hurts: until the reset the faulty cells stay in use, and another error there ends the job.

    How to mend it: reset the GPU (nvidia-smi -r -i N) or restart the node when it is idle.

    Source: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt
    """
    yield from per_gpu(
        snapshot,
        says_yes(
            "retired pages.pending page blacklist",
            "retired_pages.pending",
            "remapped rows.pending",
            "remapped_rows.pending",
            "ecc errors.channel repair pending",
            "ecc errors.tpc repair pending",
        ),
        "memory repair is pending",
        "Reset the GPU (nvidia-smi --gpu-reset -i N) or restart the node when it is idle.",
        "No",
    )
