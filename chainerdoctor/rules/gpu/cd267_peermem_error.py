"""CD267: peermem error."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD267", Severity.WARNING, needs=(KernelLog,), since="0.1")
def peermem_error(snapshot: Snapshot) -> Iterator[Finding]:
    """nvidia-peermem (GPUDirect RDMA) complains about an invalid context.

    Why it hurts: the network card kept a registration of GPU memory whose process is gone. A burst when a job
    ends is harmless in itself; a burst in the middle of a run tells when a rank died.

    How to mend it: look at what ended at that time; if no job ended, reload the module (modprobe -r
    nvidia-peermem; modprobe nvidia-peermem) with a driver and OFED that fit each other.
    """
    return told(
        snapshot,
        ("kernel.peermem",),
        "GPUDirect RDMA lost a GPU context",
        "See which process ended at that time; if none did, reload nvidia-peermem.",
    )
