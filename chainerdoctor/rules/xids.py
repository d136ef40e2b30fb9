"""What the Xid rules share: one finding per Xid number and GPU whose recommended action is the rule's."""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Optional

from chainerdoctor.facts.log import LogEvent
from chainerdoctor.findings import Finding, Location
from chainerdoctor.rules.logged import MOST_FINDINGS, events, quotes, shortened
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.xid import XIDS


def number_of(event: LogEvent) -> int:
    """The Xid's number (a captured line can hold more digits than an int should be made of)."""
    return int(event.detail.get("xid", "0")[:9])


def action_of(number: int) -> Optional[str]:
    """The action that the catalog names, or ``None`` for a number it does not know."""
    known = XIDS.get(number)
    return None if known is None else known[1]


def xids(snapshot: Snapshot, wanted: Callable[[Optional[str]], bool], remedy: str) -> Iterator[Finding]:
    """One finding for each Xid number whose action is ``wanted``, naming its GPUs."""
    by_number: Dict[int, List[LogEvent]] = {}
    for event in events(snapshot, "kernel.xid"):
        if wanted(action_of(number_of(event))):
            by_number.setdefault(number_of(event), []).append(event)
    for number in sorted(by_number)[:MOST_FINDINGS]:
        found = by_number[number]
        name = XIDS.get(number, ("a number that has no known meaning", ""))[0]
        gpus = shortened(dict.fromkeys(e.detail.get("gpu", "?") for e in found))
        hosts = sorted({h for e in found for h in e.hosts})
        where = f"{shortened(hosts)}/GPU {gpus}" if hosts else f"GPU {gpus}"
        yield Finding(
            where, f"Xid {number}: {name}", remedy, quotes(found, snapshot), Location(found[0].path, found[0].line)
        )
