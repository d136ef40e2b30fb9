"""CD608: setting matters."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.bandwidth import SettingTried
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD608", Severity.INFO, needs=(SettingTried,), since="0.1")
def setting_matters(snapshot: Snapshot) -> Iterator[Finding]:
    """An environment variable that was tried makes all-reduces faster or slower beyond the noise.

    Why it hurts: it is time that is given away on every step, or would be.

    How to mend it: set it, or leave it unset, as the finding says. The interval is the range over runs with and without it in
    turn; where it holds 1 nothing is told.
    """
    for seen in snapshot.all(SettingTried):
        fact = seen.fact
        if fact.low <= 1.0 <= fact.high:
            continue
        helps = fact.ratio < 1
        yield Finding(
            where=f"{fact.name}={fact.value}, {fact.size_bytes:,} bytes",
            message=f"the setting {'helps' if helps else 'hurts'}",
            remedy=f"{'Set' if helps else 'Do not set'} {fact.name}={fact.value}.",
            evidence=(
                Evidence("time with it over without", f"{fact.ratio:.2f} ({fact.low:.2f} to {fact.high:.2f})"),
                Evidence("pairs of runs", str(fact.pairs)),
            ),
        )
