"""CD368: gpudirect not used."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place
from chainerdoctor.rules.nccl_logged import comm_name
from chainerdoctor.snapshot import Snapshot


@rule("CD368", Severity.INFO, needs=(NcclLog,), since="0.1")
def gpudirect_not_used(snapshot: Snapshot) -> Iterator[Finding]:
    """No edge over InfiniBand uses GPUDirect RDMA.

    Why it hurts: data between GPU and network card go through host memory. Without nvidia-peermem or DMA-BUF
    that is all there is; with them it is about half of what could be had.

    How to mend it: load nvidia-peermem where the cards support it; for Omni-Path and Ethernet there may be
    nothing to mend.
    """
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        network = [e for e in communicator.edges if e.transport == "NET/IB"]
        if network and not any(e.gdr for e in network):
            edge = network[0]
            yield Finding(
                comm_name(communicator),
                "no InfiniBand edge uses GPUDirect RDMA",
                "Run modprobe nvidia-peermem on every host if the cards support it.",
                (Evidence(f"edges, {place(communicator.path, edge.line)}", f"0 of {len(network)} with GDRDMA", "all"),),
                Location(communicator.path, edge.line),
            )
