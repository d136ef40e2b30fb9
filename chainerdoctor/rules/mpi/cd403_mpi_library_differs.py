"""CD403: mpi library differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.mpi import MpiLibrary
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD403", Severity.ERROR, needs=(MpiLibrary,), since="0.1")
def mpi_library_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank loads another MPI library than the others.

    Why it hurts: two MPI implementations, and often two versions of one, cannot talk to each other: MPI_Init hangs
    or each side believes that it is alone.

    How to mend it: start all ranks from one environment.
    """
    yield from differences(
        snapshot.all(MpiLibrary),
        lambda fact: f"{fact.vendor} {fact.version}",
        "the MPI library that mpi4py loads",
        "Use one MPI on all nodes: the same environment, and the same module load before starting the ranks.",
    )
