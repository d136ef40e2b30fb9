"""CD412: MPI sum wrong."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.workload import MpiAllreduce
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD412", Severity.ERROR, needs=(MpiAllreduce,), since="0.1")
def mpi_sum_wrong(snapshot: Snapshot) -> Iterator[Finding]:
    """MPI_Allreduce of small integers gives a wrong sum on a rank.

    Why it hurts: ChainerMN's naive and flat communicators sum gradients by the same call, and nothing else checks them.

    How to mend it: have mpi4py load the MPI that started the job (chainerdoctor check-cluster, CD403 and CD411), and try
    the transport without shared-memory tricks (Open MPI: --mca btl_vader_single_copy_mechanism none).
    """
    wrong = [seen for seen in snapshot.all(MpiAllreduce) if seen.fact.wrong]
    for seen in wrong[:8]:
        yield Finding(
            where=f"{seen.node}/rank {seen.rank}",
            message="MPI's all-reduce gives wrong sums",
            remedy="Check that all ranks load one MPI (CD403, CD411), then try another transport of it.",
            evidence=(Evidence("wrong elements", f"{seen.fact.wrong:,} of {seen.fact.size_bytes // 4:,}", "0"),),
        )
