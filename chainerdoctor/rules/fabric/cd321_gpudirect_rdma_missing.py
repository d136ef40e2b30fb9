"""CD321: gpudirect rdma missing."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.fabric import PeerMemory, RdmaPort
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD321",
    Severity.WARNING,
    needs=(
        PeerMemory,
        RdmaPort,
    ),
    since="0.1",
)
def gpudirect_rdma_missing(snapshot: Snapshot) -> Iterator[Finding]:
    """A node with GPUs and InfiniBand or RoCE lacks what GPUDirect RDMA needs.

    Why it hurts: everything that goes to other nodes is copied through host memory first: half of the bandwidth or less.

    How to mend it: load nvidia_peermem (modprobe nvidia-peermem, and in /etc/modules-load.d), or use the open kernel modules,
    which hand out memory by DMA-BUF.

    Source: NCCL user guide, "GPU Direct"; NVIDIA driver README, nvidia-peermem.
    """
    if len(snapshot.nodes) < 2:
        return
    active = {seen.node: seen.fact.device for seen in snapshot.all(RdmaPort) if seen.fact.state == "ACTIVE"}
    lacking = [
        s for s in snapshot.all(PeerMemory) if s.node in active and not s.fact.peermem and not s.fact.open_modules
    ]
    if lacking:
        yield Finding(
            where=places(lacking),
            message="GPUDirect RDMA is not possible",
            remedy="Run modprobe nvidia-peermem as root, and add it to /etc/modules-load.d.",
            evidence=(
                Evidence("nvidia_peermem", "not loaded", f"loaded ({active[lacking[0].node]} is active)"),
                Evidence("kernel modules of the driver", "not the open ones", "open, for DMA-BUF"),
            ),
        )
