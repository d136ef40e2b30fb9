"""CD371: gpu far from nic."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LoggedTopology
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place, shortened
from chainerdoctor.snapshot import Snapshot


@rule("CD371", Severity.WARNING, needs=(LoggedTopology,), since="0.1")
def gpu_far_from_nic(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU reaches every network card only across the link between the processors (SYS).

    Why it hurts: GPUDirect RDMA is not used over that distance and the data crosses both processors: a few GB/s
    instead of the card's rate.

    How to mend it: give each GPU a card below the same PCIe switch or processor; where that cannot be, leave
    the GPU to runs on one node, or use NCCL_CROSS_NIC=0 with NCCL_IB_HCA to keep near pairs together.

    Source: NVIDIA/nccl#595; nvidia-smi topo -h
    """
    for sighting in snapshot.all(LoggedTopology):
        matrix = sighting.fact
        gpus = [d for d in matrix.devices if d.startswith("GPU")]
        cards = [d for d in matrix.devices if not d.startswith("GPU")]
        far = [
            gpu
            for gpu in gpus
            if cards and all(matrix.paths.get(f"{gpu} {card}", "") in ("SYS", "SOC") for card in cards)
        ]
        if far:
            yield Finding(
                shortened(far, 8),
                f"{len(far)} of {len(gpus)} GPUs reach the network only across the processors' link (SYS)",
                "Put a network card near these GPUs, or keep runs over several nodes off them (CUDA_VISIBLE_DEVICES).",
                (
                    Evidence(
                        place(matrix.path, matrix.lines[far[0]]),
                        f"{far[0]} to {shortened(cards)}: SYS",
                        "PIX, PXB, PHB or NODE",
                    ),
                ),
                Location(matrix.path, matrix.lines[far[0]]),
            )
