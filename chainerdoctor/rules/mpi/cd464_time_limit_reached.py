"""CD464: time limit reached."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD464", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def time_limit_reached(snapshot: Snapshot) -> Iterator[Finding]:
    """The scheduler ended the job because its time was over.

    Why it hurts: the run is cut; if it hung, the last lines of each rank tell where.

    How to mend it: ask for more time or write snapshots (multi_node_snapshot) to go on from; if the output
    stopped long before, look for the hang instead.
    """
    return told(
        snapshot,
        ("mpi.time_limit",),
        "the job's time limit was reached",
        "Ask for more time (--time) and resume from a snapshot; if output stopped long before, look for a hang.",
    )
