"""CD367: gpudirect off."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.log import NcclCommunicator, NcclLog, NcclProcess
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place, visible
from chainerdoctor.rules.nccl_logged import comm_name, listed_ranks, process_findings
from chainerdoctor.snapshot import Snapshot


@rule("CD367", Severity.WARNING, needs=(NcclLog,), since="0.1")
def gpudirect_off(snapshot: Snapshot) -> Iterator[Finding]:
    """GPUDirect RDMA is off although NCCL uses InfiniBand.

    Why it hurts: data between GPU and network card take a detour through host memory: about half the bandwidth.

    How to mend it: load nvidia-peermem (modprobe nvidia-peermem) or use a kernel and driver with DMA-BUF; a
    distance that is too large is a matter of which card is near which GPU (nvidia-smi topo -m);
    NCCL_NET_GDR_LEVEL sets the limit.

    Source: NVIDIA/nccl src/transport/net.cc, src/graph/paths.cc
    """

    def off(process: NcclProcess) -> Optional[Tuple[str, str, str]]:
        # Refused for cards that are far away is as it should be while a near one is used.
        if not process.gdr_disabled or process.gdr_enabled or (process.network or "").startswith("Socket"):
            return None
        return "GPUDirect", visible(process.gdr_disabled[0]), "gdr_disabled"

    yield from process_findings(
        snapshot,
        off,
        "GPUDirect RDMA is off",
        "Run modprobe nvidia-peermem on every host; for 'distance' see nvidia-smi topo -m and NCCL_NET_GDR_LEVEL.",
        "Enabled",
    )
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        network = [e for e in communicator.edges if e.transport == "NET/IB"]
        without = [e for e in network if not e.gdr]
        if without and len(without) < len(network):
            edge = without[0]
            yield Finding(
                listed_ranks(dict.fromkeys(e.source for e in without), communicator),
                f"some edges of {comm_name(communicator)} use GPUDirect RDMA and others do not",
                "See with nvidia-smi topo -m which card is near these GPUs; load nvidia-peermem on all hosts.",
                (
                    Evidence(
                        f"edges, {place(communicator.path, edge.line)}",
                        f"{len(without)} of {len(network)} without GDRDMA, first {edge.source} -> {edge.target}",
                        "all with GDRDMA",
                    ),
                ),
                Location(communicator.path, edge.line),
            )
