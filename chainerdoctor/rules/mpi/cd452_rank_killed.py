"""CD452: rank killed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD452", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def rank_killed(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank was killed from outside (signal 9).

    Why it hurts: nothing in its own output tells why, and the others wait for it.

    How to mend it: look in dmesg of that host for the OOM killer, and in the scheduler's log for a limit.
    """
    return told(
        snapshot,
        ("mpi.killed",),
        "a rank was killed (signal 9)",
        "Read dmesg on that host for 'Killed process' and the scheduler's log for a limit.",
    )
