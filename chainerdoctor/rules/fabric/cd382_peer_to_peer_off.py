"""CD382: peer to peer off."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD382", Severity.WARNING, needs=(NcclLog,), since="0.1")
def peer_to_peer_off(snapshot: Snapshot) -> Iterator[Finding]:
    """Connected GPUs do not use peer-to-peer transfers because the system forbids it.

    Why it hurts: traffic between these GPUs takes a detour through host memory.

    How to mend it: see nvidia-smi topo -p2p r; look for virtualisation, access control services (ACS) on PCIe
    bridges and the IOMMU setting.

    Source: NVIDIA/nccl src/graph/paths.cc
    """
    return told(
        snapshot,
        ("nccl.p2p_disabled",),
        "peer-to-peer is off between connected GPUs",
        "Check nvidia-smi topo -p2p r; turn ACS off on the PCIe bridges, or run on bare metal.",
    )
