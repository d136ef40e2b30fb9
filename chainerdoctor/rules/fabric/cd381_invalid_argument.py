"""CD381: invalid argument."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD381", Severity.ERROR, needs=(NcclLog,), since="0.1")
def invalid_argument(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL was called with an argument that it refuses.

    Why it hurts: the collective does not run and its rank raises; the others wait for it.

    How to mend it: make sure that arrays live on the rank's own GPU (device.use() before anything is allocated)
    and that no parameter is on the CPU.

    Source: NVIDIA/nccl src/misc/argcheck.cc
    """
    return told(
        snapshot,
        ("nccl.invalid_pointer",),
        "NCCL refused an argument",
        "Call device.use() before allocating and move the whole model to that GPU.",
    )
