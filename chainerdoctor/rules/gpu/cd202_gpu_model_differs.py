"""CD202: gpu model differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.gpu import Gpu
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD202", Severity.WARNING, needs=(Gpu,), since="0.1")
def gpu_model_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A node has other GPUs than the others.

    Why it hurts: synchronous training runs at the pace of the slowest GPU, and NCCL before 2.24.3 can hang when GPU
    architectures are mixed.

    How to mend it: run the job on nodes with one GPU model.

    Source: NVIDIA/nccl release notes, 2.24.3.
    """
    yield from differences(
        snapshot.all(Gpu),
        lambda fact: fact.name,
        "the GPU model",
        "Ask the scheduler for one GPU model (Slurm: --constraint or --gpus-per-node=MODEL:N).",
    )
