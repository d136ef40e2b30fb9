"""CD459: program not found."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD459", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def program_not_found(snapshot: Snapshot) -> Iterator[Finding]:
    """The launcher did not find the program.

    Why it hurts: nothing was started.

    How to mend it: give the full path, and see that it is the same on every host; with environments name their
    interpreter: mpirun … /path/to/env/bin/python train.py.
    """
    return told(
        snapshot,
        ("mpi.no_executable",),
        "the launcher did not find the program",
        "Give the program's full path (/path/to/env/bin/python) and see that it exists on every host.",
    )
