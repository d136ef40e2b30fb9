"""CD182: machine check."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD182", Severity.ERROR, needs=(KernelLog,), since="0.1")
def machine_check(snapshot: Snapshot) -> Iterator[Finding]:
    """The processor or memory reported an uncorrectable hardware error.

    Why it hurts: results can be wrong, and the machine may stop at any time.

    How to mend it: drain the node, read mcelog or rasdaemon (ras-mc-ctl --errors), and replace the module named
    there.
    """
    return told(
        snapshot,
        ("kernel.machine_check",),
        "the host reported an uncorrectable hardware error",
        "Drain the node and read ras-mc-ctl --errors; replace the part that it names.",
    )
