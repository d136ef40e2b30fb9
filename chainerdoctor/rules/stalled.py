"""What the rules about stalls have in common: the one verdict of a snapshot, and how it is told."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.stall import StallWatch, Whereabouts
from chainerdoctor.findings import Evidence, Finding
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import diagnose

#: What each of these rules needs.
NEEDS = (StallWatch, Whereabouts)


def stalled(snapshot: Snapshot, kind: str, remedy: str) -> Iterator[Finding]:
    """The finding, if the run ended in a stall of this kind."""
    watch = snapshot.all(StallWatch)[0].fact
    ranks = {seen.rank: seen.fact for seen in snapshot.all(Whereabouts) if seen.rank is not None}
    stall = diagnose(ranks, watch.size, watch.timeout_s, ended=not watch.interrupted)
    if stall is not None and stall.kind == kind:
        evidence = tuple(Evidence(what, seen) for what, seen in stall.evidence)
        yield Finding(where=rank_list(stall.ranks), message=stall.sentence, remedy=remedy, evidence=evidence)
