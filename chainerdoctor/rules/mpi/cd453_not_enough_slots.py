"""CD453: not enough slots."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD453", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def not_enough_slots(snapshot: Snapshot) -> Iterator[Finding]:
    """The launcher has fewer slots than ranks were asked for.

    Why it hurts: nothing was started.

    How to mend it: ask for fewer ranks, add slots=N to the hostfile (or --host name:N), or allow more with
    --oversubscribe (Open MPI 4), --map-by :OVERSUBSCRIBE (Open MPI 5).

    Source: h5py#2627; help-prte-rmaps-base.txt
    """
    return told(
        snapshot,
        ("mpi.no_slots",),
        "the launcher has too few slots for the ranks asked for",
        "Use fewer ranks, or write slots=N in the hostfile, or add --map-by :OVERSUBSCRIBE (Open MPI 4: "
        "--oversubscribe).",
    )
