"""CD362: duplicate gpu."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD362", Severity.ERROR, needs=(NcclLog,), since="0.1")
def duplicate_gpu(snapshot: Snapshot) -> Iterator[Finding]:
    """Several ranks use the same GPU.

    Why it hurts: NCCL refuses to start, and other GPUs stay idle.

    How to mend it: let each rank take the GPU of its number on the node:
    chainer.cuda.get_device_from_id(comm.intra_rank).use() right after create_communicator; do not set
    CUDA_VISIBLE_DEVICES to one GPU for all ranks.

    Source: horovod/horovod#3929
    """
    return told(
        snapshot,
        ("nccl.duplicate_gpu",),
        "several ranks use the same GPU",
        "Call chainer.cuda.get_device_from_id(comm.intra_rank).use() in every rank.",
    )
