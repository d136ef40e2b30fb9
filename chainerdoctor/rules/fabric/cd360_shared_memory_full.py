"""CD360: shared memory full."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD360", Severity.ERROR, needs=(NcclLog,), since="0.1")
def shared_memory_full(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL could not make its shared memory segment: /dev/shm is too small or cannot be used.

    Why it hurts: ranks on one host that cannot reach each other directly talk through /dev/shm; the run stops
    at start-up.

    How to mend it: give the container more: docker run --shm-size=1g (or --ipc=host); in Kubernetes mount an
    emptyDir of medium Memory at /dev/shm. NCCL_SHM_DISABLE=1 only moves the traffic to the network.

    Source: NVIDIA/nccl#290
    """
    return told(
        snapshot,
        ("nccl.shm_full",),
        "NCCL cannot allocate shared memory",
        "Give /dev/shm more room: docker run --shm-size=1g or --ipc=host; check with df -h /dev/shm inside the "
        "container.",
    )
