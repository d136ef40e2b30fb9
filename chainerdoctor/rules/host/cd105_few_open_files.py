"""CD105: few open files."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.host import ResourceLimit
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: 1,024 open files were too few from 232 processes on: about four a peer, and some for the program itself.
_BASE = 96
_PER_PEER = 4


@rule("CD105", Severity.WARNING, needs=(ResourceLimit,), since="0.1")
def few_open_files(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank may open so few files that a large job runs out of sockets.

    Why it hurts: NCCL and MPI keep several sockets for each peer and channel. With the usual 1,024 open files, jobs
    of a few hundred processes fail at the first all-reduce with a system error, and smaller ones work.

    How to mend it: raise nofile in /etc/security/limits.conf and in the launcher's daemon (LimitNOFILE=65536).

    Source: chainer/chainermn issue 218 (only above 232 processes).
    """
    ranks = max((seen.fact.size for seen in snapshot.all(LaunchedAs)), default=1)
    needed = _BASE + ranks * _PER_PEER
    low = [s for s in snapshot.all(ResourceLimit) if s.fact.name == "nofile" and s.fact.soft is not None]
    for value, sightings in groups(low, lambda fact: str(fact.soft)).items():
        if int(value) < needed:
            yield Finding(
                where=places(sightings),
                message=f"the limit on open files is low for {ranks} ranks",
                remedy="Raise nofile to 65536 in limits.conf and in the launcher's daemon (LimitNOFILE=65536).",
                evidence=(Evidence("ulimit -n under the launcher", value, f"{needed} or more"),),
            )
