"""CD461: fork after mpi."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD461", Severity.WARNING, needs=(LauncherLog,), since="0.1")
def fork_after_mpi(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank forked after MPI was started.

    Why it hurts: the child shares registered memory with its parent: crashes, hangs and silent corruption are
    possible. MultiprocessIterator forks its workers.

    How to mend it: start workers without fork: multiprocessing.set_start_method('forkserver') and one started
    dummy process, both before create_communicator.

    Source: chainermn#204; NVIDIA/nccl#65
    """
    return told(
        snapshot,
        ("mpi.fork",),
        "a rank forked after MPI was started",
        "Call multiprocessing.set_start_method('forkserver') and start a dummy process before create_communicator.",
    )
