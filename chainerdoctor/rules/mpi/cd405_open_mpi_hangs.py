"""CD405: open mpi hangs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.mpi import OPEN_MPI, MpiLibrary
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

_HANGING = frozenset({"3.0.0", "3.0.1", "3.0.2", "3.1.0", "3.1.1", "3.1.2"})


@rule("CD405", Severity.ERROR, needs=(MpiLibrary,), since="0.1")
def open_mpi_hangs(snapshot: Snapshot) -> Iterator[Finding]:
    """This version of Open MPI hangs with ChainerMN.

    Why it hurts: in Open MPI 3.0.0 to 3.0.2 and 3.1.0 to 3.1.2 the first scatter of ChainerMN never returns.

    How to mend it: use Open MPI 3.0.3, 3.1.3 or newer (4.1 is a good choice).

    Source: chainer issue 5740; open-mpi/ompi issue 3972.
    """
    bad = [s for s in snapshot.all(MpiLibrary) if s.fact.vendor == OPEN_MPI and s.fact.version in _HANGING]
    for version, sightings in groups(bad, lambda fact: fact.version).items():
        yield Finding(
            where=places(sightings),
            message=f"Open MPI {version} hangs at ChainerMN's first scatter",
            remedy="Install Open MPI 4.1 or newer and reinstall mpi4py against it.",
            evidence=(Evidence("MPI", f"Open MPI {version}", "3.0.3, 3.1.3 or newer"),),
        )
