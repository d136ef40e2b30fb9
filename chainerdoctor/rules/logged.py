"""What the rules about logs share: turning events into findings that quote their lines."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, List, Tuple

from chainerdoctor.facts.log import LogEvent, StagedLine
from chainerdoctor.findings import Evidence, Finding, Location
from chainerdoctor.snapshot import Snapshot

#: Lines quoted by one finding; the rest is counted.
QUOTED = 3
#: Characters of a line that are quoted.
QUOTE_LENGTH = 180
#: Findings of one rule: more would bury the others.
MOST_FINDINGS = 50


def events(snapshot: Snapshot, *names: str) -> List[LogEvent]:
    """The events of these names, in the order of the files."""
    return [s.fact for s in snapshot.all(LogEvent) if s.fact.event in names]


def visible(text: str) -> str:
    """The text with control characters spelled out, shortened."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
    return shown if len(shown) <= QUOTE_LENGTH else shown[: QUOTE_LENGTH - 1] + "…"


def place(path: str, line: int) -> str:
    """``file:line`` as evidence names it; the finding's location has the whole path."""
    name = path.rsplit("/", 1)[-1]
    return f"{name}:{line}" if line else name


def counted(number: int, noun: str) -> str:
    """``1 rank``, ``2 ranks``, ``2 processes``."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}es" if noun.endswith("s") else f"{number} {noun}s"


def quotes(found: Iterable[LogEvent], snapshot: Snapshot) -> Tuple[Evidence, ...]:
    """The first lines as evidence, with the number of their like and the training stage, if that is known."""
    found = list(found)
    stages = {(s.fact.path, s.fact.line): s.fact for s in snapshot.all(StagedLine)}
    made: List[Evidence] = []
    for event in found[:QUOTED]:
        more = f" (and {event.count - 1} more like it)" if event.count > 1 else ""
        made.append(Evidence(place(event.path, event.line), visible(event.text) + more))
        stage = stages.get((event.path, event.line))
        if stage is not None:
            made.append(Evidence("training stage then", f"iteration {stage.iteration}, {stage.phase}"))
    if len(found) > QUOTED:
        made.append(Evidence("further places", ", ".join(place(e.path, e.line) for e in found[QUOTED:][:10])))
    return tuple(made)


def speakers(found: Iterable[LogEvent]) -> str:
    """Who said it: hosts and ranks, or the file if the lines name nobody."""
    found = list(found)
    hosts = sorted({host for event in found for host in event.hosts})
    ranks = sorted({rank for event in found for rank in event.ranks})
    said = shortened(hosts)
    if ranks:
        said = f"{said}/rank {shortened(ranks)}" if said else f"rank {shortened(ranks)}"
    return said or found[0].path


def shortened(names: Iterable[object], most: int = 4) -> str:
    """The first few names, and how many there are besides."""
    texts = [str(name) for name in names]
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def told(snapshot: Snapshot, names: Tuple[str, ...], message: str, remedy: str) -> Iterator[Finding]:
    """One finding for all events of these names, if there are any."""
    found = events(snapshot, *names)
    if found:
        first = found[0]
        yield Finding(speakers(found), message, remedy, quotes(found, snapshot), Location(first.path, first.line))


def told_each(
    snapshot: Snapshot, names: Tuple[str, ...], by: Tuple[str, ...], message: str, remedy: str
) -> Iterator[Finding]:
    """One finding for each value of the details ``by``; the texts are formats that may name details."""
    groups: Dict[Tuple[str, ...], List[LogEvent]] = {}
    for event in events(snapshot, *names):
        groups.setdefault(tuple(event.detail.get(name, "?") for name in by), []).append(event)
    for number, (key, found) in enumerate(groups.items()):
        if number == MOST_FINDINGS:
            return
        detail = dict(zip(by, key))
        first = found[0]
        yield Finding(
            speakers(found),
            message.format(**detail),
            remedy.format(**detail),
            quotes(found, snapshot),
            Location(first.path, first.line),
        )
