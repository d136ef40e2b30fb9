"""CD003: report damaged."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.mpi import RankOutcome
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD003", Severity.WARNING, needs=(RankOutcome,), since="0.1")
def report_damaged(snapshot: Snapshot) -> Iterator[Finding]:
    """Pieces of a rank's report were lost or damaged on the way.

    Why it hurts: something writes into the launcher's output stream, or the launcher cuts lines, so what that rank
    saw is incomplete and faults on it can be missed.

    How to mend it: look for programs that print in shell profiles (.bashrc) of that node, then run the check again.
    """
    damaged = [seen for seen in snapshot.all(RankOutcome) if seen.fact.state == "damaged"]
    for seen in damaged:
        yield Finding(
            where=seen.where if seen.node else f"rank {seen.fact.rank}",
            message="its report arrived damaged",
            remedy="Silence what prints in that node's shell profile, then run the check again.",
            evidence=(Evidence("report", seen.fact.detail, "all pieces"),),
        )
