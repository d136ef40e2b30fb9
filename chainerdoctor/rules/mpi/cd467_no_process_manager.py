"""CD467: no process manager."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD467", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def no_process_manager(snapshot: Snapshot) -> Iterator[Finding]:
    """The MPI and the scheduler do not share a process management interface.

    Why it hurts: every process starts as rank 0 of 1, or none starts.

    How to mend it: start with mpirun inside the allocation, or with srun --mpi=pmix (srun --mpi=list shows what
    there is) and an MPI built for it.
    """
    return told(
        snapshot,
        ("mpi.pmi",),
        "the MPI was not built for this scheduler's start-up",
        "Use mpirun inside the allocation, or srun --mpi=pmix with an MPI built with PMIx.",
    )
