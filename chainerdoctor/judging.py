"""Apply rules to a snapshot. Pure: no I/O, no clock, no environment; the same input gives the same verdicts."""

from __future__ import annotations

import traceback
from typing import Dict, Iterable, List, Optional, Tuple, Type

from chainerdoctor import __version__
from chainerdoctor.facts import Fact, Missing
from chainerdoctor.findings import CRASHED, FOUND, PASSED, SKIPPED, Report, Verdict
from chainerdoctor.overview import overview
from chainerdoctor.rules import Rule
from chainerdoctor.snapshot import Sighting, Snapshot, without_garbage_collection


def judge(snapshot: Snapshot, rules: Iterable[Rule]) -> Tuple[Verdict, ...]:
    """One verdict for each rule, in the order given.

    A rule whose facts were not seen is skipped with the reason; one that raises becomes a crashed verdict, and the
    others go on.
    """
    missing: Dict[str, List[Sighting[Missing]]] = {}
    for sighting in snapshot.missing:
        for kind in sighting.fact.kinds:
            missing.setdefault(kind, []).append(sighting)
    return tuple(_judge_one(snapshot, each, missing) for each in rules)


def _judge_one(snapshot: Snapshot, rule: Rule, missing: Dict[str, List[Sighting[Missing]]]) -> Verdict:
    unseen = [kind for kind in rule.needs if not snapshot.has(kind)]
    enough = len(unseen) < len(rule.needs) if rule.any_of and rule.needs else not unseen
    if not enough:
        reason, blind = _why_unseen(unseen, missing, rule.any_of)
        return Verdict(rule.code, rule.slug, rule.severity, SKIPPED, rule.summary, reason, blind)
    try:
        findings = tuple(rule.judge(snapshot))
    except Exception:
        last = traceback.format_exc().strip().splitlines()
        reason = f"the rule itself failed: {last[-1]} ({last[-3].strip() if len(last) > 2 else 'no frame'})"
        return Verdict(rule.code, rule.slug, rule.severity, CRASHED, rule.summary, reason)
    status = FOUND if findings else PASSED
    return Verdict(rule.code, rule.slug, rule.severity, status, rule.summary, findings=findings)


def _why_unseen(
    unseen: List[Type[Fact]], missing: Dict[str, List[Sighting[Missing]]], any_of: bool
) -> Tuple[str, bool]:
    """The reason as a sentence, and whether a fault (not mere absence) is behind it."""
    told = {kind: missing.get(kind.kind, []) for kind in unseen}
    # A rule about GPUs has nothing to judge where there is no GPU, whatever else could not be seen.
    absent = [seen for seen in told.values() if seen and not any(s.fact.blind for s in seen)]
    sightings = absent[0] if absent and not any_of else [s for seen in told.values() for s in seen]
    if not sightings:
        return "not looked at: " + ", ".join(kind.kind for kind in unseen), False
    # A fault outranks "there is none": the reader has to mend the fault before the absence can be believed.
    first = min(sightings, key=lambda sighting: not sighting.fact.blind).fact
    return f"{first.probe}: {first.detail or first.reason}", any(s.fact.blind for s in sightings)


def report_on(
    snapshot: Snapshot,
    rules: Iterable[Rule],
    command: str,
    checked: Optional[Tuple[Tuple[str, str], ...]] = None,
    identity: Optional[str] = None,
) -> Report:
    """Judge a snapshot and put the verdicts, its overview and its identity into a report.

    ``checked`` are the head's (label, value) pairs where a command has better ones than the overview of a cluster;
    ``identity`` stands for the snapshot's id where the command knows what it was made of.
    """
    with without_garbage_collection():
        return Report(
            tool=f"chainerdoctor {__version__}",
            command=command,
            snapshot_id=snapshot.id if identity is None else identity,
            taken_at=snapshot.taken_at,
            verdicts=judge(snapshot, rules),
            checked=overview(snapshot) if checked is None else checked,
        )
