"""CD408: mpi library not found."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts import ABSENT
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD408", Severity.ERROR, needs=(PackageSurvey,), since="0.1")
def mpi_library_not_found(snapshot: Snapshot) -> Iterator[Finding]:
    """mpi4py is installed and finds no MPI library.

    Why it hurts: import mpi4py.MPI fails, and with it every ChainerMN communicator.

    How to mend it: pip install mpich (a whole MPI as a wheel), or load the cluster's MPI module before starting
    Python.
    """
    have = {(s.node, s.rank) for s in snapshot.all(Distribution) if s.fact.name.startswith("mpi4py")}
    failed = [
        s
        for s in snapshot.missing
        if s.fact.probe == "mpi_library" and s.fact.reason == ABSENT and (s.node, s.rank) in have
    ]
    for detail, sightings in groups(failed, lambda fact: fact.detail).items():
        yield Finding(
            where=places(sightings),
            message="mpi4py finds no MPI library",
            remedy="Run pip install mpich, or load the cluster's MPI module (module load openmpi) first.",
            evidence=(Evidence("import mpi4py.MPI", detail, "works"),),
        )
