"""CD216: pcie generation low."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuClocks,
    GpuPcie,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot


def slow(fact: GpuPcie) -> Optional[Tuple[str, str, str]]:
    """Generation now beside the highest that is possible."""
    if fact.generation is None or fact.generation_max is None or fact.generation >= fact.generation_max:
        return None
    return "PCIe generation", str(fact.generation), str(fact.generation_max)


@rule(
    "CD216",
    Severity.WARNING,
    needs=(
        GpuPcie,
        GpuClocks,
    ),
    since="0.1",
)
def pcie_generation_low(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU at full performance state runs PCIe at a lower generation than card and slot allow together.

    Why it hurts: each generation down halves the bandwidth to the host and to network cards. Idle cards lower it to save
    power, so only a card in performance state P0 is judged.

    How to mend it: look for PCIe errors in dmesg, set the slot's speed in the BIOS to automatic, and reseat the card.
    """
    state = {(seen.node, seen.fact.index): seen.fact.pstate for seen in snapshot.all(GpuClocks)}
    at_full = [seen for seen in snapshot.all(GpuPcie) if state.get((seen.node, seen.fact.index)) == 0]
    yield from per_node(
        at_full,
        slow,
        "PCIe runs at a lower generation than it could",
        "Look for PCIe errors in dmesg, set the slot's speed to automatic in the BIOS, and reseat GPU {gpus}.",
    )
