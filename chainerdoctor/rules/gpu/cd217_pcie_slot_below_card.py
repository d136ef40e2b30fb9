"""CD217: pcie slot below card."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuPcie,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import everywhere
from chainerdoctor.snapshot import Snapshot


def limited(fact: GpuPcie) -> Optional[Tuple[str, str, str]]:
    """What the slot allows beside what the card can."""
    if fact.generation_max is None or fact.generation_card is None or fact.generation_max >= fact.generation_card:
        return None
    return "PCIe generation of the slot", str(fact.generation_max), str(fact.generation_card)


@rule("CD217", Severity.INFO, needs=(GpuPcie,), since="0.1")
def pcie_slot_below_card(snapshot: Snapshot) -> Iterator[Finding]:
    """The slot of a GPU allows a lower PCIe generation than the card.

    Why it hurts: the link to host and network cards has half or less of what the card could do. It is a property of the
    board, or a BIOS setting that was made to get a riser to work.

    How to mend it: look into the BIOS for the speed of the slot; on older boards nothing can be done.
    """
    yield from everywhere(
        snapshot.all(GpuPcie),
        limited,
        "the slot is slower than the card",
        "Look into the BIOS for the speed of the slots; on an older board nothing can be done.",
    )
