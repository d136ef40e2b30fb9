"""CD364: bootstrap broken."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD364", Severity.ERROR, needs=(NcclLog,), since="0.1")
def bootstrap_broken(snapshot: Snapshot) -> Iterator[Finding]:
    """A connection between ranks was closed or spoken to by something that is no rank of this run.

    Why it hurts: one rank gone means that all stop. Before the first collective it is usually a rank that died
    at start-up, two runs that use one NCCL_COMM_ID or unique id, a port scanner, or two hosts of one name.

    How to mend it: find the rank whose log ends first: its own error is the cause, this line only the echo. If
    no rank died, look for port scanners and for a second run; 'wrong type' or 'magic' says that a stranger, or
    a rank of another run, connected.

    Source: NVIDIA/nccl#1612, NVIDIA/nccl-tests#188
    """
    return told(
        snapshot,
        ("nccl.peer_closed", "nccl.outsider", "nccl.bootstrap_mismatch"),
        "a connection between ranks was broken",
        "Find the rank that ended first and mend its error; if none did, look for a port scanner or a second run "
        "on the same address.",
    )
