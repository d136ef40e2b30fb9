"""CD470: shared memory short."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD470", Severity.WARNING, needs=(LauncherLog,), since="0.1")
def shared_memory_short(snapshot: Snapshot) -> Iterator[Finding]:
    """Open MPI has too little room for its shared memory file.

    Why it hurts: ranks of one host crash with a bus error, or talk through the network.

    How to mend it: give /dev/shm (or the session directory in $TMPDIR) more room: docker run --shm-size=1g.
    """
    return told(
        snapshot,
        ("mpi.shm_small",),
        "Open MPI's shared memory file does not fit",
        "Give /dev/shm more room: docker run --shm-size=1g, or set TMPDIR to a local disk with space.",
    )
