"""CD465: tcp connection failed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD465", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def tcp_connection_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """MPI ranks could not connect over TCP.

    Why it hurts: Open MPI has tried an address that other hosts cannot reach, typically docker0 or virbr0 which
    have the same address everywhere; the job hangs or stops at the first message.

    How to mend it: name the network that all hosts share: mpirun --mca btl_tcp_if_include eth0 --mca
    oob_tcp_if_include eth0 (or a subnet such as 10.1.0.0/16).

    Source: open-mpi/ompi#8213
    """
    return told(
        snapshot,
        ("mpi.tcp_unreachable",),
        "MPI ranks could not connect over TCP",
        "Add --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 with the interface that all hosts share.",
    )
