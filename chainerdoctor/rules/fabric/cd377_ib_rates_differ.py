"""CD377: ib rates differ."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.log import LoggedIbPort
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import shortened
from chainerdoctor.snapshot import Snapshot


@rule("CD377", Severity.INFO, needs=(LoggedIbPort,), since="0.1")
def ib_rates_differ(snapshot: Snapshot) -> Iterator[Finding]:
    """Active InfiniBand ports of a host have different rates.

    Why it hurts: a slower port of the same kind of card is often a link that came up with fewer lanes; rings
    through it are slower.

    How to mend it: compare ibstat's CA type and rate; check the cable if cards of one type differ.
    """
    rates: Dict[str, Dict[float, List[str]]] = {}
    first: Dict[str, LoggedIbPort] = {}
    for sighting in snapshot.all(LoggedIbPort):
        port = sighting.fact
        if port.state.lower() == "active" and port.rate_gbps and port.layer == "InfiniBand":
            rates.setdefault(port.path, {}).setdefault(port.rate_gbps, []).append(port.device)
            first.setdefault(port.path, port)
    for path, by_rate in rates.items():
        if len(by_rate) > 1:
            slow = by_rate[min(by_rate)]
            seen = "; ".join(f"{rate:g} Gb/s: {shortened(by_rate[rate])}" for rate in sorted(by_rate))
            yield Finding(
                shortened(slow),
                "InfiniBand ports of this host run at different rates",
                "Compare the cards' types in ibstat; if they are equal, check cable and switch port of the slower.",
                (Evidence("rates", seen, "one rate"),),
                Location(path, first[path].line),
            )
