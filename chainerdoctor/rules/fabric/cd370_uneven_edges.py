"""CD370: uneven edges."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.log import NcclCommunicator, NcclEdge, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place, shortened
from chainerdoctor.rules.nccl_logged import rank_hosts
from chainerdoctor.snapshot import Snapshot


@rule("CD370", Severity.WARNING, needs=(NcclLog,), since="0.1")
def uneven_edges(snapshot: Snapshot) -> Iterator[Finding]:
    """GPUs of one host are connected unevenly: some pairs directly, others through host memory.

    Why it hurts: a ring is as fast as its slowest edge, so one pair without peer access slows all.

    How to mend it: see nvidia-smi topo -m and topo -p2p r for the pair; move the job to GPUs that are connected
    alike (CUDA_VISIBLE_DEVICES).

    Source: NVIDIA/nccl src/transport/shm.cc
    """
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        if communicator.mixed:
            continue  # rank 1 of one communicator is not rank 1 of another
        hosts = rank_hosts(communicator)
        by_host: Dict[str, Dict[str, List[NcclEdge]]] = {}
        for edge in communicator.edges:
            if edge.transport.startswith(("P2P", "SHM")) and edge.source in hosts:
                kind = "SHM" if edge.transport.startswith("SHM") else "P2P"
                by_host.setdefault(hosts[edge.source], {}).setdefault(kind, []).append(edge)
        for host, kinds in by_host.items():
            if len(kinds) == 2:
                slow = kinds["SHM"]
                pairs = shortened(dict.fromkeys(f"{e.source}->{e.target}" for e in slow))
                yield Finding(
                    host,
                    "some GPU pairs of this host go through host memory and others directly",
                    "Compare the pairs in nvidia-smi topo -m and topo -p2p r; use GPUs that are connected alike.",
                    (
                        Evidence(
                            f"edges, {place(communicator.path, slow[0].line)}",
                            f"{pairs} via SHM",
                            f"P2P, as {len(kinds['P2P'])} others",
                        ),
                    ),
                    Location(communicator.path, slow[0].line),
                )
                break
