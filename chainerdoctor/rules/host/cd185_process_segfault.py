"""CD185: process segfault."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told_each
from chainerdoctor.snapshot import Snapshot


@rule("CD185", Severity.WARNING, needs=(KernelLog,), since="0.1")
def process_segfault(snapshot: Snapshot) -> Iterator[Finding]:
    """A process ended with a segmentation fault.

    Why it hurts: if it was a rank, the others wait for it.

    How to mend it: get a traceback with python -X faulthandler; typical reasons are fork after MPI or CUDA was
    started and two MPI libraries in one process.
    """
    return told_each(
        snapshot,
        ("kernel.segfault",),
        ("name",),
        "the process {name} crashed (segmentation fault)",
        "Run with python -X faulthandler to see where {name} crashed.",
    )
