"""CD010: deviates from baseline."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.consensus import places
from chainerdoctor.facts.baseline import Compared, Deviation
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD010", Severity.ERROR, needs=(Compared,), since="0.1")
def deviates_from_baseline(snapshot: Snapshot) -> Iterator[Finding]:
    """Something is not as it was in the snapshot that was taken when all was well.

    Why it hurts: what changed since the last good run is the first suspect when a run goes bad.

    How to mend it: undo the change, or take a new baseline once the new state has proved itself (chainerdoctor
    snapshot -o baseline.json).
    """
    by_change: Dict[Deviation, List[Sighting[Deviation]]] = {}
    for seen in snapshot.all(Deviation):
        by_change.setdefault(seen.fact, []).append(seen)
    baseline = snapshot.all(Compared)[0].fact.baseline
    for change, sightings in by_change.items():
        yield Finding(
            where=places(sightings),
            message=f"{change.subject} is not as in {baseline}",
            remedy="Undo the change, or take a new baseline once it has proved itself.",
            evidence=(Evidence(change.subject, change.seen, change.expected),),
        )
