"""CD607: not measured."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.bandwidth import BenchLeftOut, BenchSetup
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD607", Severity.ERROR, needs=(BenchSetup, BenchLeftOut), since="0.1", any_of=True)
def not_measured(snapshot: Snapshot) -> Iterator[Finding]:
    """Something that was asked for could not be measured.

    Why it hurts: what was not measured has not passed.

    How to mend it: follow the reason: another backend or dtype, smaller sizes, or what is missing installed.
    """
    told: Dict[Tuple[str, str], List[Sighting[BenchLeftOut]]] = {}
    for seen in snapshot.all(BenchLeftOut):
        told.setdefault((seen.fact.what, seen.fact.why), []).append(seen)
    for (what, why), seen_by in told.items():
        ranks = sorted(seen.rank for seen in seen_by if seen.rank is not None)
        where = f"{what} on {len(ranks)} rank{'s' if len(ranks) != 1 else ''}" if ranks else what
        yield Finding(
            where=where,
            message="could not be measured",
            remedy="Follow the reason, or ask for what is there (--backend, --dtype, --max).",
            evidence=(Evidence("reason", why),),
        )
