"""CD276: link flapped."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told_each
from chainerdoctor.snapshot import Snapshot


@rule("CD276", Severity.WARNING, needs=(KernelLog,), since="0.1")
def link_flapped(snapshot: Snapshot) -> Iterator[Finding]:
    """A high-speed network link went down.

    Why it hurts: transfers on the link stall or fail; NCCL gives up after its retries and the run stops or
    hangs.

    How to mend it: look at how often: a link that flaps more than once has a bad cable, transceiver or port.
    Check the counters with ethtool -S or perfquery -x and replace.
    """
    return told_each(
        snapshot,
        ("kernel.link_down",),
        ("device",),
        "the link {device} went down",
        "Check the port's error counters and replace cable or transceiver of {device} if it repeats.",
    )
