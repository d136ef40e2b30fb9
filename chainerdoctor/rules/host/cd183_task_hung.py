"""CD183: task hung."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD183", Severity.WARNING, needs=(KernelLog,), since="0.1")
def task_hung(snapshot: Snapshot) -> Iterator[Finding]:
    """The kernel saw a task that did not run on for minutes.

    Why it hurts: a rank that waits in the kernel (for storage, a driver or a lock) holds up every collective.

    How to mend it: read the stack that follows the line: nfs or lustre means storage, nvidia means the driver.
    Take the node out if it repeats.
    """
    return told(
        snapshot,
        ("kernel.hung_task", "kernel.soft_lockup"),
        "a task was stuck in the kernel",
        "Read the stack trace below the line: it names the storage or driver that did not answer.",
    )
