"""CD401: not one world."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.mpi import LaunchedAs, MpiLibrary, MpiWorld
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

_REMEDIES = {
    "Slurm": "Give srun the plugin that this MPI speaks: srun --mpi=pmi2 (MPICH, Intel MPI) or srun --mpi=pmix (Open MPI).",
    "": "Start the ranks with the mpiexec that belongs to mpi4py's MPI (for wheels: VENV/bin/mpiexec).",
}


@rule("CD401", Severity.ERROR, needs=(MpiWorld, LaunchedAs), since="0.1")
def not_one_world(snapshot: Snapshot) -> Iterator[Finding]:
    """The launcher started N ranks, and MPI says that each is alone (rank 0 of 1) or counts otherwise.

    Why it hurts: every process trains by itself on all the data, nothing is averaged, and the snapshots overwrite
    each other, without an error. mpiexec and mpi4py belong to two different MPIs.

    How to mend it: start the ranks with the mpiexec of the MPI that mpi4py loads, or build mpi4py for the
    launcher's: pip install --force-reinstall --no-binary mpi4py mpi4py.

    Source: mpi4py issue 155.
    """
    launched = {(seen.node, seen.rank): seen.fact for seen in snapshot.all(LaunchedAs)}
    wrong = [
        seen
        for seen in snapshot.all(MpiWorld)
        if (seen.node, seen.rank) in launched and launched[seen.node, seen.rank].size != seen.fact.size
    ]
    if not wrong:
        return
    first = wrong[0]
    told = launched[first.node, first.rank]
    library = next((s.fact for s in snapshot.all(MpiLibrary) if (s.node, s.rank) == (first.node, first.rank)), None)
    evidence = [
        Evidence("the launcher", f"rank {told.rank} of {told.size} ({told.launcher})"),
        Evidence("MPI", f"rank {first.fact.rank} of {first.fact.size}", f"rank {told.rank} of {told.size}"),
    ]
    if library is not None:
        evidence.append(Evidence("mpi4py loads", f"{library.vendor} {library.version} ({library.path})", told.launcher))
    yield Finding(
        where=places(wrong),
        message=f"MPI sees {first.fact.size} rank where the launcher started {told.size}",
        remedy=_REMEDIES.get(told.launcher, _REMEDIES[""]),
        evidence=tuple(evidence),
    )
