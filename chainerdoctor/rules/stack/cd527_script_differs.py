"""CD527: script differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import TrainingScript
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD527", Severity.ERROR, needs=(TrainingScript,), since="0.1")
def script_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """The training script is not the same file on every rank.

    Why it hurts: ranks that run different code issue different collectives and wait for each other for ever.

    How to mend it: run the script from a shared file system, or copy it to all nodes before the run.
    """
    yield from differences(
        snapshot.all(TrainingScript),
        lambda fact: f"sha256 {fact.sha256[:12]}, {fact.size_bytes} bytes",
        "the training script",
        "Copy the script to all nodes again, or run it from a shared file system.",
    )
