"""CD457: message truncated."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog, PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD457",
    Severity.ERROR,
    needs=(
        LauncherLog,
        PythonLog,
    ),
    since="0.1",
    any_of=True,
)
def message_truncated(snapshot: Snapshot) -> Iterator[Finding]:
    """MPI received a longer message than the receiver expected.

    Why it hurts: ranks are not at the same collective: one of them left out or added a call. The run stops on
    one rank and hangs on the others.

    How to mend it: make all ranks do the same calls in the same order. With ChainerMN: a gradient that is None
    on some ranks (zero_fill=False), a collective under 'if rank == 0', or scatter_dataset called by one rank
    alone.

    Source: chainer#6759, #7305
    """
    return told(
        snapshot,
        ("mpi.truncated",),
        "ranks are in different collectives (message truncated)",
        "Compare what each rank calls: gradients that are None, collectives under 'if rank == 0', data sets of "
        "unequal length.",
    )
