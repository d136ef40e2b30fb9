"""CD203: gpu count differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD203", Severity.WARNING, needs=(GpuDriver,), since="0.1")
def gpu_count_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A node shows fewer or more GPUs than the others.

    Why it hurts: ranks are usually placed by a fixed number per node, so a missing GPU makes two ranks share one or
    one rank fail with "invalid device ordinal".

    How to mend it: find the missing GPU (dmesg, nvidia-smi -L, the container's device list) or leave the node out.
    """
    yield from differences(
        snapshot.all(GpuDriver),
        lambda fact: str(fact.gpus),
        "the number of GPUs",
        "Look at dmesg for Xid 79 on that node (a GPU that fell off the bus), or exclude the node.",
    )
