"""CD104: clocks apart."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.host import ClockOffset
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

_TOLERATED_S = 1.0


@rule("CD104", Severity.WARNING, needs=(ClockOffset,), since="0.1")
def clocks_apart(snapshot: Snapshot) -> Iterator[Finding]:
    """The clocks of two nodes are more than a second apart.

    Why it hurts: log lines of different nodes can no longer be put in order, certificates and munge credentials are
    refused, and traces of several ranks do not line up.

    How to mend it: start chronyd or ntpd on every node and check with chronyc tracking.
    """
    clocks = snapshot.all(ClockOffset)
    if len(clocks) < 2:
        return
    # Each offset is known within bounds: only what lies apart whatever the true values are is reported.
    earliest = min(clocks, key=lambda seen: seen.fact.high_s)
    latest = max(clocks, key=lambda seen: seen.fact.low_s)
    apart_s = latest.fact.low_s - earliest.fact.high_s
    if apart_s > _TOLERATED_S:
        yield Finding(
            where=f"{earliest.node}, {latest.node}",
            message="their clocks are apart",
            remedy="Start chronyd (or ntpd) on every node; chronyc tracking shows the offset.",
            evidence=(Evidence("difference", f"at least {apart_s:.1f} s", f"at most {_TOLERATED_S:g} s"),),
        )
