"""CD454: cross memory attach blocked."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD454", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def cross_memory_attach_blocked(snapshot: Snapshot) -> Iterator[Finding]:
    """The MPI cannot copy between processes directly (cross memory attach is forbidden).

    Why it hurts: the run stops, or each message between ranks of one host takes an extra copy. Docker forbids
    ptrace by default, and Yama's ptrace_scope can do the same.

    How to mend it: start the container with --cap-add=SYS_PTRACE, or turn it off: MV2_SMP_USE_CMA=0 (MVAPICH2),
    --mca btl_vader_single_copy_mechanism none (Open MPI 4), --mca btl_sm_… smsc none (5).

    Source: open-mpi/ompi#4948; ChainerMN troubleshooting
    """
    return told(
        snapshot,
        ("mpi.cma_blocked",),
        "direct copies between processes (CMA) are forbidden here",
        "Run docker with --cap-add=SYS_PTRACE, or set MV2_SMP_USE_CMA=0 or --mca btl_vader_single_copy_mechanism none.",
    )
