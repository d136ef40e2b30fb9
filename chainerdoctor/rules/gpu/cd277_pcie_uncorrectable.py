"""CD277: pcie uncorrectable."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD277", Severity.ERROR, needs=(KernelLog,), since="0.1")
def pcie_uncorrectable(snapshot: Snapshot) -> Iterator[Finding]:
    """PCIe reported an uncorrectable error.

    Why it hurts: data on the bus was lost; a GPU or network card below that port may stop or fall off the bus.

    How to mend it: find the device with lspci -s, reseat it, update firmware; have slot or card replaced if it
    repeats.
    """
    return told(
        snapshot,
        ("kernel.pcie_error",),
        "PCIe reported an uncorrectable error",
        "Find the device with lspci -s ADDRESS, reseat it, and replace it if the error comes back.",
    )
