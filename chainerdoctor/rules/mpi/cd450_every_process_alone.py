"""CD450: every process alone."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import events, quotes, speakers
from chainerdoctor.snapshot import Snapshot


@rule("CD450", Severity.ERROR, needs=(PythonLog,), since="0.1")
def every_process_alone(snapshot: Snapshot) -> Iterator[Finding]:
    """Every process thinks that it is the only one (rank 0 of 1).

    Why it hurts: the launcher and mpi4py belong to different MPIs: N independent trainings run instead of one.

    How to mend it: use the mpiexec of the MPI that mpi4py was built with: compare mpiexec --version with
    MPI.Get_library_version() (from mpi4py import MPI).

    Source: mpi4py#155; chainermn examples
    """
    for event in events(snapshot, "mpi.singleton"):
        if event.detail.get("size") == "1" and event.count > 1:
            yield Finding(
                speakers([event]),
                f"{event.count} processes each say that they are alone",
                "Use the mpiexec that belongs to mpi4py: compare mpiexec --version with MPI.Get_library_version().",
                quotes([event], snapshot),
                Location(event.path, event.line),
            )
