"""CD451: rank segfaulted."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD451", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def rank_segfaulted(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank ended with a segmentation fault.

    Why it hurts: the launcher stops all ranks, or they wait for the dead one.

    How to mend it: look at the top frames: below MPI_… with 'Invalid permissions' a GPU array went to an MPI
    that is not CUDA-aware (use pure_nccl, or an MPI built with CUDA); inside a loader process it is fork after
    MPI or CUDA started (multiprocessing.set_start_method('forkserver') before create_communicator). python -X
    faulthandler names the Python line.

    Source: chainermn#64, #204
    """
    return told(
        snapshot,
        ("mpi.segv",),
        "a rank crashed (segmentation fault)",
        "Run with python -X faulthandler; if the frames name MPI_ calls use a CUDA-aware MPI or pure_nccl, if a "
        "loader process use forkserver.",
    )
