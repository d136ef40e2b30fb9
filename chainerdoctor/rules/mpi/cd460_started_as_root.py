"""CD460: started as root."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD460", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def started_as_root(snapshot: Snapshot) -> Iterator[Finding]:
    """Open MPI refuses to run as root.

    Why it hurts: nothing was started.

    How to mend it: run as an ordinary user; in a container where there is only root add --allow-run-as-root (or
    OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1).
    """
    return told(
        snapshot,
        ("mpi.root",),
        "Open MPI does not run as root",
        "Run as an ordinary user, or add --allow-run-as-root inside a container.",
    )
