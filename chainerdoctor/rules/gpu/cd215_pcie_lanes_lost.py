"""CD215: pcie lanes lost."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuPcie,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot


def narrow(fact: GpuPcie) -> Optional[Tuple[str, str, str]]:
    """Lanes now beside the most that are possible."""
    if fact.width is None or fact.width_max is None or fact.width >= fact.width_max:
        return None
    return "PCIe lanes", f"x{fact.width}", f"x{fact.width_max}"


@rule("CD215", Severity.WARNING, needs=(GpuPcie,), since="0.1")
def pcie_lanes_lost(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU has fewer PCIe lanes than card and slot allow together.

    Why it hurts: half of the lanes are half of the bandwidth to the host, to network cards and, without NVLink, to other
    GPUs. The number of lanes does not fall when a card is idle, so this is a bad contact or a riser.

    How to mend it: power off, reseat the card and its riser, and look for "PCIe Bus Error" in dmesg.
    """
    yield from per_node(
        snapshot.all(GpuPcie),
        narrow,
        "PCIe lanes are lost",
        "Reseat GPU {gpus} and its riser with the power off, and look for PCIe errors in dmesg.",
    )
