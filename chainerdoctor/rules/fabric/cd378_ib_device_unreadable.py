"""CD378: ib device unreadable."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LogFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD378", Severity.ERROR, needs=(LogFile,), since="0.1")
def ib_device_unreadable(snapshot: Snapshot) -> Iterator[Finding]:
    """ibstat could not read an InfiniBand device.

    Why it hurts: the device has vanished or its driver is broken; NCCL leaves it out, or fails.

    How to mend it: look in dmesg for mlx5 errors, compare lspci with ls /sys/class/infiniband, and reload the
    driver or restart the node.
    """
    return told(
        snapshot,
        ("ib.panic",),
        "ibstat could not read a device",
        "Compare lspci with ls /sys/class/infiniband and read dmesg for mlx5 errors; restart the node if the "
        "device is gone.",
    )
