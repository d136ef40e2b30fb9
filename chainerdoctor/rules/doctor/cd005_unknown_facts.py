"""CD005: unknown facts."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts import Unknown
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD005", Severity.INFO, needs=(), since="0.1")
def unknown_facts(snapshot: Snapshot) -> Iterator[Finding]:
    """The snapshot holds facts of kinds that this version does not know.

    Why it hurts: it was taken by a newer chainerdoctor, and what that version saw is not judged here.

    How to mend it: judge the snapshot with the version that took it (pip install --upgrade chainerdoctor).
    """
    names = sorted({seen.fact.name for seen in snapshot.all(Unknown)})
    if not names:
        return
    yield Finding(
        where="the snapshot",
        message="holds facts of kinds that this version does not know",
        remedy="Upgrade: pip install --upgrade chainerdoctor.",
        evidence=(Evidence("kinds", ", ".join(names[:10]), "known kinds"), Evidence("taken by", snapshot.tool)),
    )
