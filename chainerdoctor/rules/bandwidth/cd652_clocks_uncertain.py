"""CD652: clocks uncertain."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.comm import Lateness, RankClock, Scaling
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: Share of an iteration by which a clock may be wrong.
_SHARE = 0.1


@rule("CD652", Severity.INFO, needs=(RankClock, Scaling, Lateness), since="0.1")
def clocks_uncertain(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank's clock could not be compared with rank 0's well enough for the length of an iteration.

    Why it hurts: waiting and lateness of ranks on other nodes are differences of two clocks; they are no better than these.

    How to mend it: run again on a quiet network, and without --no-clocks.
    """
    iteration_s = snapshot.all(Scaling)[0].fact.iteration_s
    for seen in snapshot.all(RankClock):
        clock = seen.fact
        unmeasured = not clock.shared and clock.offset_s == 0 and clock.uncertainty_s == 0
        if clock.shared or (not unmeasured and clock.uncertainty_s <= _SHARE * iteration_s):
            continue
        text = "was not compared" if unmeasured else f"is known to {clock.uncertainty_s * 1e3:.3g} ms only"
        yield Finding(
            where=seen.where,
            message=f"this rank's clock {text}",
            remedy="Read waiting and lateness of this rank with care; run again with --clocks on a quiet network.",
            evidence=(Evidence("an iteration", f"{iteration_s * 1e3:.3g} ms"),),
        )
