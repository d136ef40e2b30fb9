"""CD101: kernel differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.host import OperatingSystem
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD101", Severity.INFO, needs=(OperatingSystem,), since="0.1")
def kernel_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A node runs another kernel than the others.

    Why it hurts: drivers, InfiniBand stacks and cgroup limits differ with the kernel, so a fault that only some
    nodes show often starts here. By itself it is harmless.

    How to mend it: boot all nodes of a job with one kernel, or put them into separate partitions.
    """
    yield from differences(
        snapshot.all(OperatingSystem),
        lambda fact: fact.kernel,
        "the kernel",
        "Boot all nodes with the same kernel, or keep this in mind when only some nodes fail.",
    )
