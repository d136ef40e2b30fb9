"""CD468: mpi error."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD468", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def mpi_error(snapshot: Snapshot) -> Iterator[Finding]:
    """An MPI call failed.

    Why it hurts: MPI's default is to stop the whole job at the first error.

    How to mend it: read the error stack below the line: its last line names the true reason.
    """
    return told(
        snapshot,
        ("mpi.fatal",),
        "an MPI call failed",
        "Read the last line of the error stack in the log: it names the reason.",
    )
