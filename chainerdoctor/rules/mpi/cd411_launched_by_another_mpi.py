"""CD411: launched by another mpi."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.mpi import INTEL_MPI, MPICH, MVAPICH, OPEN_MPI, LaunchedAs, MpiLibrary
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: The libraries that each launcher can start. Slurm starts all of them, by way of its plugins.
_STARTS = {
    "Hydra": frozenset({MPICH, INTEL_MPI, MVAPICH}),
    "MVAPICH": frozenset({MPICH, INTEL_MPI, MVAPICH}),
    "Open MPI": frozenset({OPEN_MPI}),
}
_KNOWN = frozenset({MPICH, INTEL_MPI, MVAPICH, OPEN_MPI})


@rule("CD411", Severity.ERROR, needs=(LaunchedAs, MpiLibrary), since="0.1")
def launched_by_another_mpi(snapshot: Snapshot) -> Iterator[Finding]:
    """The ranks were started by the launcher of another MPI than the one that mpi4py loads.

    Why it hurts: the library finds no partner to start up with. It then aborts in MPI_Init, or believes to be
    alone, and every process trains by itself as rank 0 of 1.

    How to mend it: start the ranks with the mpiexec of mpi4py's MPI (the evidence names both), or rebuild mpi4py
    for the launcher's MPI.

    Source: mpi4py issue 155; reproduced with Open MPI 5 starting MPICH 5 (aborts) and MPICH starting Open MPI
    (alone).
    """
    libraries = {(seen.node, seen.rank): seen.fact for seen in snapshot.all(MpiLibrary)}
    wrong = [
        seen
        for seen in snapshot.all(LaunchedAs)
        if (seen.node, seen.rank) in libraries
        and seen.fact.launcher in _STARTS
        and libraries[seen.node, seen.rank].vendor in _KNOWN - _STARTS[seen.fact.launcher]
    ]
    if wrong:
        library = libraries[wrong[0].node, wrong[0].rank]
        yield Finding(
            where=places(wrong),
            message=f"started by {wrong[0].fact.launcher}, and mpi4py loads {library.vendor}",
            remedy=f"Start the ranks with the mpiexec of {library.vendor} (for wheels: VENV/bin/mpiexec).",
            evidence=(
                Evidence("launcher", wrong[0].fact.launcher, library.vendor),
                Evidence("mpi4py loads", f"{library.vendor} {library.version} ({library.path})"),
            ),
        )
