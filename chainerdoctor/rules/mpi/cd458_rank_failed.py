"""CD458: rank failed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LauncherLog
from chainerdoctor.findings import Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import events, quotes, speakers
from chainerdoctor.snapshot import Snapshot


@rule("CD458", Severity.ERROR, needs=(LauncherLog,), since="0.1")
def rank_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank ended with an error, and the launcher stopped the others.

    Why it hurts: the first one to fail is the cause; what the others print is the echo.

    How to mend it: read the output of the rank named here, above this line.
    """
    found = events(snapshot, "mpi.abort", "mpi.failed", "mpi.signal")
    if found:
        who = events(snapshot, "mpi.who")
        ranks = [
            e.detail.get("rank") or e.detail["tasks"]
            for e in (*found, *who)
            if "rank" in e.detail or "tasks" in e.detail
        ]
        hosts = [e.detail["host"] for e in (*found, *who) if "host" in e.detail]
        named = f"rank {ranks[0]}" if ranks else "the rank that failed"
        where = "/".join([*hosts[:1], *([f"rank {ranks[0]}"] if ranks else [])]) or speakers(found)
        yield Finding(
            where,
            f"{named} failed first" if ranks else "a rank failed",
            f"Read what {named} printed above this line; the other ranks were stopped because of it.",
            quotes([*found, *who], snapshot),
            Location(found[0].path, found[0].line),
        )
