"""CD404: mpiexec of another mpi."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.mpi import INTEL_MPI, MPICH, MVAPICH, SLURM, UNKNOWN_VENDOR, Mpiexec, MpiLibrary
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


def _family(vendor: str) -> str:
    """MPICH, Intel MPI and MVAPICH share Hydra and one binary interface (the MPICH ABI initiative)."""
    return MPICH if vendor in (MPICH, INTEL_MPI, MVAPICH) else vendor


@rule("CD404", Severity.WARNING, needs=(Mpiexec, MpiLibrary), since="0.1")
def mpiexec_of_another_mpi(snapshot: Snapshot) -> Iterator[Finding]:
    """The mpiexec that comes first on this machine belongs to another MPI than the one that mpi4py loads.

    Why it hurts: typing mpiexec starts processes that each believe to be rank 0 of 1 (CD401), train alone and say
    nothing.

    How to mend it: call the other mpiexec by its full path, or put its folder first on PATH.

    Source: mpi4py issue 155.
    """
    first = {seen.node: seen for seen in snapshot.all(Mpiexec) if seen.fact.preferred}
    for seen in snapshot.all(MpiLibrary):
        launcher = first.get(seen.node)
        if launcher is None or UNKNOWN_VENDOR in (launcher.fact.vendor, seen.fact.vendor):
            continue
        if _family(launcher.fact.vendor) == _family(seen.fact.vendor) or launcher.fact.vendor == SLURM:
            continue
        del first[seen.node]  # once a node is enough: ranks share the environment
        right = next(
            (s.fact.path for s in snapshot.all(Mpiexec) if _family(s.fact.vendor) == _family(seen.fact.vendor)), None
        )
        remedy = f"Start ranks with {right}." if right else f"Install the mpiexec of {seen.fact.vendor}."
        yield Finding(
            where=seen.node,
            message=f"mpiexec is {launcher.fact.vendor}'s and mpi4py loads {seen.fact.vendor}",
            remedy=remedy,
            evidence=(
                Evidence(
                    "mpiexec",
                    f"{launcher.fact.path} ({launcher.fact.vendor} {launcher.fact.version})",
                    seen.fact.vendor,
                ),
                Evidence("mpi4py loads", f"{seen.fact.path} ({seen.fact.vendor} {seen.fact.version})"),
            ),
        )
