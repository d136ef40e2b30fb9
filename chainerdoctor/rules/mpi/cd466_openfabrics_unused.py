"""CD466: openfabrics unused."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD466", Severity.WARNING, needs=(LauncherLog,), since="0.1")
def openfabrics_unused(snapshot: Snapshot) -> Iterator[Finding]:
    """Open MPI could not use an InfiniBand device with its old openib transport.

    Why it hurts: messages take TCP instead, or the warning hides the port that really is down.

    How to mend it: use UCX: mpirun --mca pml ucx --mca btl ^openib; check the port with ibstat.
    """
    return told(
        snapshot,
        ("mpi.openfabrics",),
        "Open MPI could not use an InfiniBand device",
        "Use UCX: mpirun --mca pml ucx --mca btl ^openib; check ibstat.",
    )
