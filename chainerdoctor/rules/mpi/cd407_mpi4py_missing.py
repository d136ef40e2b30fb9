"""CD407: mpi4py missing."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD407", Severity.ERROR, needs=(PackageSurvey,), since="0.1")
def mpi4py_missing(snapshot: Snapshot) -> Iterator[Finding]:
    """mpi4py is not installed.

    Why it hurts: ChainerMN cannot create a communicator without it, so nothing runs on more than one process.

    How to mend it: pip install mpi4py mpich brings both the binding and an MPI; on a cluster build mpi4py against
    the site's MPI instead (pip install --no-binary mpi4py mpi4py).
    """
    have = {(s.node, s.rank) for s in snapshot.all(Distribution) if s.fact.name.startswith("mpi4py")}
    lacking = [s for s in snapshot.all(PackageSurvey) if (s.node, s.rank) not in have]
    if lacking:
        yield Finding(
            where=places(lacking),
            message="mpi4py is not installed",
            remedy="Run pip install mpi4py mpich (or build mpi4py against the cluster's MPI).",
            evidence=(Evidence("mpi4py", "not among the installed packages", "3.1 or newer"),),
        )
