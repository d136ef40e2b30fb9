"""CD682: nccl tests failed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LogFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told_each
from chainerdoctor.snapshot import Snapshot


@rule("CD682", Severity.ERROR, needs=(LogFile,), since="0.1")
def nccl_tests_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """nccl-tests stopped with an error.

    Why it hurts: what fails there fails in training too.

    How to mend it: read the quoted reason; run again with NCCL_DEBUG=INFO and check that log.
    """
    return told_each(
        snapshot,
        ("nccltests.failure",),
        ("why",),
        "nccl-tests stopped: {why}",
        "Run the test again with NCCL_DEBUG=INFO and check its log.",
    )
