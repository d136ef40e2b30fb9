"""CD359: locked memory limit."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog, NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD359",
    Severity.ERROR,
    needs=(
        NcclLog,
        LauncherLog,
    ),
    since="0.1",
    any_of=True,
)
def locked_memory_limit(snapshot: Snapshot) -> Iterator[Finding]:
    """Memory could not be registered with the network card because the limit for locked memory is too low.

    Why it hurts: RDMA needs pinned buffers; without them InfiniBand cannot be used and the run stops at
    start-up.

    How to mend it: raise the limit where the ranks are started, not in your shell alone: 'ulimit -l unlimited'
    in the job script, LimitMEMLOCK=infinity for slurmd or sshd, --ulimit memlock=-1 for Docker; check with
    'mpirun … bash -c "ulimit -l"'.

    Source: NVIDIA/nccl-tests#206
    """
    return told(
        snapshot,
        ("nccl.memlock", "mpi.memlock"),
        "memory could not be registered for RDMA: the locked-memory limit is too low",
        "Set 'ulimit -l unlimited' where the ranks start (slurmd: LimitMEMLOCK=infinity; Docker: --ulimit "
        "memlock=-1) and check it inside mpirun.",
    )
