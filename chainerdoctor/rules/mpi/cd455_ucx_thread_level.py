"""CD455: ucx thread level."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD455", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def ucx_thread_level(snapshot: Snapshot) -> Iterator[Finding]:
    """UCX cannot give MPI_THREAD_MULTIPLE, which mpi4py asks for.

    Why it hurts: MPI falls back or fails at start-up.

    How to mend it: ask for less: export MPI4PY_RC_THREAD_LEVEL=serialized, or build UCX with --enable-mt.

    Source: mpi4py#428
    """
    return told(
        snapshot,
        ("mpi.ucx_threads",),
        "UCX was built without MPI_THREAD_MULTIPLE",
        "Set MPI4PY_RC_THREAD_LEVEL=serialized in the environment of all ranks.",
    )
