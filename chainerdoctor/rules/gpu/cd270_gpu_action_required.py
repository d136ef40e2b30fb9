"""CD270: gpu action required."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told_each
from chainerdoctor.snapshot import Snapshot


@rule("CD270", Severity.ERROR, needs=(KernelLog,), since="0.1")
def gpu_action_required(snapshot: Snapshot) -> Iterator[Finding]:
    """The driver says what a GPU needs before it can be used again (Xid 154).

    Why it hurts: until that is done the GPU is not usable, or errors spread to its NVLink peers.

    How to mend it: do what the line says: drain the node's jobs, reset the GPU, or restart the node.

    Source: docs.nvidia.com/deploy/xid-errors, Xid catalog
    """
    for finding in told_each(
        snapshot,
        ("kernel.xid_action",),
        ("gpu", "action"),
        "the driver asks for an action on GPU {gpu}: {action}",
        "Do what the driver asks for on GPU {gpu}: {action}.",
    ):
        if not finding.message.endswith(": None"):
            yield finding
