"""CD369: nvls failed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD369", Severity.WARNING, needs=(NcclLog,), since="0.1")
def nvls_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """NVLink SHARP (NVLS) is there but could not be used.

    Why it hurts: all-reduce inside the node runs about a fifth slower than the switch allows, or the run stops.

    How to mend it: restart nvidia-fabricmanager of the driver's own version, or free the multicast objects that
    an ended job holds; NCCL_NVLS_ENABLE=0 goes on without.

    Source: NVIDIA/nccl src/transport/nvls.cc
    """
    return told(
        snapshot,
        ("nccl.nvls_failed",),
        "NVLS could not be set up",
        "Restart nvidia-fabricmanager (same version as the driver); NCCL_NVLS_ENABLE=0 runs without it.",
    )
