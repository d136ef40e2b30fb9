"""CD365: equal host names."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place
from chainerdoctor.rules.nccl_logged import listed_ranks, rank_hosts
from chainerdoctor.snapshot import Snapshot


@rule("CD365", Severity.ERROR, needs=(NcclLog,), since="0.1")
def equal_host_names(snapshot: Snapshot) -> Iterator[Finding]:
    """Different machines have the same host name.

    Why it hurts: NCCL takes them for one host, tries shared memory and CUDA IPC between them, and fails or
    hangs.

    How to mend it: give each machine a name of its own (hostnamectl set-hostname), or set NCCL_HOSTID to
    something different on each.

    Source: NVIDIA/nccl-tests#188
    """
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        if communicator.mixed:
            continue  # rank 1 of one communicator is not rank 1 of another
        hosts = rank_hosts(communicator)
        near = {
            hosts.get(e.source) for e in communicator.edges if e.transport.startswith("P2P") and hosts.get(e.source)
        }
        for edge in communicator.edges:
            host = hosts.get(edge.source)
            # Between ranks of one machine NCCL takes the network only if P2P and shared memory are switched off; here
            # P2P is in use on that "machine".
            if edge.transport.startswith("NET/") and host and host == hosts.get(edge.target) and host in near:
                yield Finding(
                    f"{host}/rank {edge.source} and rank {edge.target}",
                    f"several machines seem to be called {host}: ranks of one name talk over the network",
                    "Give each machine its own name (hostnamectl set-hostname), or set NCCL_HOSTID differently on"
                    " each.",
                    (
                        Evidence(
                            f"edge, {place(communicator.path, edge.line)}",
                            f"{edge.source} -> {edge.target} via {edge.transport}",
                            "P2P or SHM within a host",
                        ),
                        Evidence("ranks", listed_ranks([edge.source, edge.target], communicator)),
                    ),
                    Location(communicator.path, edge.line),
                )
                break
