"""CD201: driver differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD201", Severity.WARNING, needs=(GpuDriver,), since="0.1")
def driver_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A node has another NVIDIA driver than the others.

    Why it hurts: the driver decides which CUDA runtime works, how NCCL reaches peers and whether PTX can be
    compiled, so one node fails or is slow where the others are fine.

    How to mend it: install one driver version on all nodes of the partition.

    Source: NVIDIA/nccl issue 286 asks for the same stack on all ranks; CUDA compatibility guide.
    """
    yield from differences(
        snapshot.all(GpuDriver),
        lambda fact: fact.version,
        "the NVIDIA driver",
        "Install one driver version on all nodes, then check with nvidia-smi --query-gpu=driver_version --format=csv.",
    )
