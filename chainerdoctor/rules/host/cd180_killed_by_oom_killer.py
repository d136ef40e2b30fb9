"""CD180: killed by oom killer."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog, LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD180",
    Severity.ERROR,
    needs=(
        KernelLog,
        LauncherLog,
    ),
    since="0.1",
    any_of=True,
)
def killed_by_oom_killer(snapshot: Snapshot) -> Iterator[Finding]:
    """A process was killed because the host (or its memory limit) ran out of memory.

    Why it hurts: the rank is gone without a traceback, and the others wait for it.

    How to mend it: lower the number of loader processes and their prefetch, keep the data set in files instead
    of in every process's memory (scatter_dataset copies to each), or raise the job's memory (--mem, docker -m).

    Source: HDNNP issue 181 (scatter_dataset)
    """
    return told(
        snapshot,
        ("kernel.oom", "mpi.out_of_memory"),
        "a process was killed for lack of host memory",
        "Use fewer loader processes or more memory for the job (srun --mem, docker -m); check RSS with check-cluster.",
    )
