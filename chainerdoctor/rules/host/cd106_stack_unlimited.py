"""CD106: stack unlimited."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.host import ResourceLimit
from chainerdoctor.facts.stack import NcclVersion
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD106", Severity.INFO, needs=(ResourceLimit, NcclVersion), since="0.1")
def stack_unlimited(snapshot: Snapshot) -> Iterator[Finding]:
    """The stack limit is "unlimited" where NCCL is used.

    Why it hurts: glibc then gives new threads 2 MiB of stack instead of 8 MiB; NCCL's threads have run out of it
    and crashed.

    How to mend it: set a number: ulimit -s 8192 before starting the ranks.

    Source: NCCL user guide, "Troubleshooting", stack size.
    """
    unlimited = [s for s in snapshot.all(ResourceLimit) if s.fact.name == "stack" and s.fact.soft is None]
    if unlimited:
        yield Finding(
            where=places(unlimited),
            message="the stack limit is unlimited, which makes the stacks of NCCL's threads small",
            remedy="Run ulimit -s 8192 before starting the ranks.",
            evidence=(Evidence("ulimit -s", "unlimited", "8192 (KiB)"),),
        )
