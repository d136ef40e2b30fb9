"""CD361: peer access failed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD361", Severity.ERROR, needs=(NcclLog,), since="0.1")
def peer_access_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """Two GPUs of a host cannot map each other's memory (CUDA IPC or peer access failed).

    Why it hurts: the ranks stop at start-up, although each GPU alone works.

    How to mend it: see the path with nvidia-smi topo -m. GPUs below different root complexes, different
    containers without --ipc=host, differing CUDA_VISIBLE_DEVICES isolation, or an IOMMU between them are the
    usual reasons; NCCL_P2P_DISABLE=1 (or NCCL_P2P_LEVEL=PHB) gets the run going through host memory, more
    slowly.

    Source: horovod/horovod#785, NVIDIA/nccl src/transport/p2p.cc
    """
    return told(
        snapshot,
        ("nccl.ipc_failed",),
        "GPUs cannot reach each other's memory",
        "Check nvidia-smi topo -m and run all ranks in one container with --ipc=host; NCCL_P2P_LEVEL=PHB works "
        "around it at a cost.",
    )
