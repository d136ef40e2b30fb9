"""CD372: slow start."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.nccl_logged import comm_name, listed_ranks
from chainerdoctor.snapshot import Snapshot

#: Seconds; thousands of ranks need a few, so a minute is a fault and not scale.
SLOW_START_S = 60.0


@rule("CD372", Severity.WARNING, needs=(NcclLog,), since="0.1")
def slow_start(snapshot: Snapshot) -> Iterator[Finding]:
    """Setting up a communicator took long.

    Why it hurts: a run that makes communicators often, or restarts, pays it each time; it is usually name
    resolution, an unreachable interface that is tried first, or a file system that loads libraries slowly.

    How to mend it: look where the time went in NCCL's own line (Init timings: bootstrap, allgathers, topo,
    connections); set NCCL_SOCKET_IFNAME; put libraries on a local disk.

    Source: threshold: own; NCCL itself needs a few seconds for a thousand ranks
    """
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        took = communicator.init_s
        if took is not None and took > SLOW_START_S:
            rank = [communicator.slowest] if communicator.slowest is not None else []
            yield Finding(
                listed_ranks(rank, communicator) or comm_name(communicator),
                f"{comm_name(communicator)} took {took:.0f} s to set up",
                "Read the parts in NCCL's 'Init timings' line; set NCCL_SOCKET_IFNAME and check name resolution.",
                (Evidence("longest initialisation", f"{took:.1f} s", f"below {SLOW_START_S:g} s"),),
                Location(communicator.path, communicator.line),
            )
