"""CD219: gpu fell off."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gpu import (
    GpuDriver,
    GpuLost,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot


@rule("CD219", Severity.ERROR, needs=(GpuDriver,), since="0.1")
def gpu_fell_off(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU that the driver lists no longer answers, or asks for a reset.

    Why it hurts: every call to it fails ("GPU is lost"), and a job that gets it ends at once. It fell off the bus: power,
    heat, a bad contact, or a broken card.

    How to mend it: drain the node and restart it; if it comes again, look for Xid 79 in dmesg, reseat the card and check its
    power cable.

    Source: nvml.h, NVML_ERROR_GPU_IS_LOST and NVML_ERROR_RESET_REQUIRED; NVIDIA Xid catalogue.
    """
    yield from per_node(
        snapshot.all(GpuLost),
        lambda fact: (fact.call, fact.detail, "an answer"),
        "the GPU no longer answers",
        "Drain the node and restart it; if it comes again look for Xid 79 in dmesg and reseat GPU {gpus}.",
    )
