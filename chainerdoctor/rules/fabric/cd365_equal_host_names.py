"""CD365: equal host names."""

from __future__ import annotations

from typing import Dict, Iterator, Optional, Tuple

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
        pair = same_place(communicator)
        if pair is None:
            continue
        for edge in communicator.edges:
            host = hosts.get(edge.source)
            # One GPU cannot be two ranks, and between ranks of one machine NCCL hardly ever takes the network.
            if edge.transport.startswith("NET/") and host and host == hosts.get(edge.target):
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
                        Evidence("one host name and one PCI bus", listed_ranks(pair, communicator), "different GPUs"),
                    ),
                    Location(communicator.path, edge.line),
                )
                break


def same_place(communicator: NcclCommunicator) -> Optional[Tuple[int, int]]:
    """Two ranks that claim the same GPU of the same host, if there are any."""
    first: Dict[Tuple[str, str], int] = {}
    for rank in sorted(int(r) for r in communicator.where):
        host, _, bus = (communicator.where[str(rank)].split("/") + ["", ""])[:3]
        if host and bus and first.setdefault((host, bus), rank) != rank:
            return first[(host, bus)], rank
    return None
