"""CD606: rank late."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.bandwidth import Waiting
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.measured_bandwidth import slow_ones
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD606", Severity.WARNING, needs=(Waiting,), since="0.1")
def rank_late(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank comes to collectives later than the others after equal work.

    Why it hurts: all wait for it in every step. Who waits least in a collective came last; no clocks are compared.

    How to mend it: look at the load, clock and power settings of that rank's processor, and at its core binding.
    """
    waits = {seen.fact.rank: seen for seen in snapshot.all(Waiting)}
    for rank in slow_ones(snapshot).late:
        fact = waits[rank].fact
        others = sorted(seen.fact.wait_s for seen in waits.values() if seen.fact.rank != rank)
        yield Finding(
            where=f"{waits[rank].node}/rank {rank}",
            message="the rank comes last to collectives, and the others wait for it",
            remedy="Look at the load, the clock and the core binding of that rank's processor.",
            evidence=(
                Evidence("came last", f"{fact.came_last} of {fact.rounds} times", "its share"),
                Evidence(
                    "the others wait", f"{others[len(others) // 2] * 1e3:.1f} ms", f"{fact.wait_s * 1e3:.1f} ms as it"
                ),
            ),
        )
