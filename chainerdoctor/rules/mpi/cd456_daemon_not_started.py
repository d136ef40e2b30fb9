"""CD456: daemon not started."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD456", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def daemon_not_started(snapshot: Snapshot) -> Iterator[Finding]:
    """The launcher could not start its daemon on another host, or lost it.

    Why it hurts: no rank runs there, and the job ends or hangs at start-up.

    How to mend it: try 'ssh HOST hostname' without a password from the first host; see that the same MPI is in
    PATH and LD_LIBRARY_PATH of non-interactive shells there, and that firewalls let the hosts talk on all
    ports.

    Source: open-mpi/ompi#8213
    """
    return told(
        snapshot,
        ("mpi.daemon_lost",),
        "the launcher could not reach another host",
        "Try 'ssh HOST which mpirun' without a password and open the firewall between the hosts.",
    )
