"""CD605: link slow."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.bandwidth import PairTiming
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.measured_bandwidth import slow_ones
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD605", Severity.WARNING, needs=(PairTiming,), since="0.1")
def link_slow(snapshot: Snapshot) -> Iterator[Finding]:
    """Messages between two ranks are slow, while both are quick with the others.

    Why it hurts: a ring that holds this pair moves at its pace.

    How to mend it: look at the switches and cables between the two nodes, or at the path between the two GPUs
    (nvidia-smi topo -m).
    """
    found = slow_ones(snapshot)
    for one, two in found.links:
        yield Finding(
            where=f"ranks {one}–{two}",
            message="messages between these two ranks are slow",
            remedy="Look at the switches and cables between their nodes, or at nvidia-smi topo -m within one.",
            evidence=(Evidence("time", f"{found.times[one, two]:.1f} times the usual", "about 1"),),
        )
