"""CD103: memlock limited."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.fabric import RdmaPort
from chainerdoctor.facts.host import ResourceLimit
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD103", Severity.ERROR, needs=(ResourceLimit, RdmaPort), since="0.1")
def memlock_limited(snapshot: Snapshot) -> Iterator[Finding]:
    """The limit on locked memory, as ranks see it under the launcher, is not unlimited on a node with RDMA
    adapters.

    Why it hurts: InfiniBand and RoCE pin every buffer. With a limit, ibv_reg_mr fails with "Cannot allocate memory"
    as soon as buffers grow, often only inside mpirun, since the daemon's limits count and not those of your shell.

    How to mend it: set "* soft memlock unlimited" and "* hard memlock unlimited" in /etc/security/limits.conf,
    LimitMEMLOCK=infinity for slurmd or sshd, and --ulimit memlock=-1 for Docker.

    Source: NVIDIA/nccl-tests issue 206; NCCL user guide, "Docker".
    """
    with_rdma = {seen.node for seen in snapshot.all(RdmaPort)}
    limited = [s for s in snapshot.all(ResourceLimit) if s.fact.name == "memlock" and s.fact.soft is not None]
    for value, sightings in groups(limited, lambda fact: f"{(fact.soft or 0) // 1024} KiB").items():
        hit = [seen for seen in sightings if seen.node in with_rdma]
        if hit:
            yield Finding(
                where=places(hit),
                message="locked memory is limited and the node has RDMA adapters",
                remedy="Set memlock to unlimited in limits.conf and in the launcher's daemon (LimitMEMLOCK=infinity), then log in again.",
                evidence=(Evidence("ulimit -l under the launcher", value, "unlimited"),),
            )
