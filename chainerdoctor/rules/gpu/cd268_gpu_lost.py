"""CD268: gpu lost."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LogFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD268", Severity.ERROR, needs=(LogFile,), since="0.1")
def gpu_lost(snapshot: Snapshot) -> Iterator[Finding]:
    """The driver lost a GPU, could not start it, or does not answer nvidia-smi.

    Why it hurts: the GPU is gone for every process until the machine is restarted; runs on it stop, and runs on
    the others of its node wait.

    How to mend it: drain the node and restart it; if the GPU does not come back, check power and seating, then
    have it replaced.
    """
    return told(
        snapshot,
        ("kernel.fell_off_bus", "kernel.rm_init_failed", "smi.failed"),
        "the driver lost a GPU or does not answer",
        "Drain and restart the node; if it happens again, check the card's power and seating and have it replaced.",
    )
