"""CD008: rank left no capture."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts import Missing
from chainerdoctor.facts.run import ProgramRun
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD008", Severity.ERROR, needs=(ProgramRun,), since="0.1")
def rank_left_no_capture(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank of the run has no capture that can be read.

    Why it hurts: the report is about the other ranks only, and the fault may be on this one.

    How to mend it: the folder of a run has to be one that all nodes share (--out). Where they share none, copy the
    rank-*.capture files of the other nodes into it and use chainerdoctor report.
    """
    by_reason: Dict[str, List[int]] = {}
    for seen in snapshot.all(Missing):
        if seen.fact.probe == "capture" and seen.rank is not None:
            by_reason.setdefault(seen.fact.detail.partition(": ")[2], []).append(seen.rank)
    for reason, ranks in sorted(by_reason.items()):
        yield Finding(
            where=rank_list(sorted(ranks)),
            message="left no capture that can be read",
            remedy="Record with --out in a folder that all nodes share, or copy the missing files into the run's folder.",
            evidence=(Evidence("in its place", reason, "rank-NNNNN.capture"),),
        )
