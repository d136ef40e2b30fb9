"""Who differs from the others: the odd one out by majority. Pure; used by every rule that compares nodes."""

from __future__ import annotations

from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar

from chainerdoctor.facts import Fact
from chainerdoctor.findings import Evidence, Finding
from chainerdoctor.snapshot import Sighting

K = TypeVar("K", bound=Fact)


def places(sightings: Iterable[Sighting[Fact]]) -> str:
    """Where something was seen, for people: ``node3``, ``node3/rank 5``, ``node3, node4 and 12 more``."""
    by_node: Dict[str, List[Optional[int]]] = {}
    for seen in sightings:
        by_node.setdefault(seen.node, []).append(seen.rank)
    names = []
    for node, ranks in by_node.items():
        numbers = sorted({rank for rank in ranks if rank is not None})
        names.append(node if None in ranks or not numbers else f"{node}/{rank_list(numbers)}")
    return _some(names)


def rank_list(ranks: Sequence[int]) -> str:
    """``rank 3``, ``ranks 0–7``, ``ranks 1, 3, 5``; the numbers have to be sorted."""
    runs: List[Tuple[int, int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in runs]
    shown = ", ".join(texts[:8]) + (f" and {len(texts) - 8} more runs" if len(texts) > 8 else "")
    return f"rank {shown}" if len(ranks) == 1 else f"ranks {shown}"


def _some(names: Sequence[str], most: int = 3) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def groups(sightings: Iterable[Sighting[K]], value: Callable[[K], Optional[str]]) -> Dict[str, List[Sighting[K]]]:
    """Sightings by value, the most frequent value first; sightings without a value (``None``) are left out."""
    found: Dict[str, List[Sighting[K]]] = {}
    for seen in sightings:
        text = value(seen.fact)
        if text is not None:
            found.setdefault(text, []).append(seen)
    return dict(sorted(found.items(), key=lambda item: (-len({s.node for s in item[1]}), -len(item[1]), item[0])))


def differences(
    sightings: Iterable[Sighting[K]], value: Callable[[K], Optional[str]], subject: str, remedy: str
) -> Iterator[Finding]:
    """One finding for each value that differs from the majority's.

    ``subject`` begins the message ("the NVIDIA driver"). Where no value has more nodes (or, on one node, ranks) than
    every other, nobody is called odd: there is one finding that names all sides.
    """
    found = groups(sightings, value)
    if len(found) < 2:
        return
    sides = list(found.items())
    if _weight(sides[0][1]) == _weight(sides[1][1]):
        evidence = tuple(Evidence(places(seen), text, "the same everywhere") for text, seen in sides[:6])
        where = _some([places(seen) for _, seen in sides])
        yield Finding(
            where, f"{subject} is not the same everywhere ({_count(sides[0][1])} each side)", remedy, evidence
        )
        return
    usual, usual_seen = sides[0]
    for text, seen in sides[1:]:
        yield Finding(
            where=places(seen),
            message=f"{subject} differs from the other {_count(usual_seen)}",
            remedy=remedy,
            evidence=(Evidence(places(seen), text, f"{usual} ({places(usual_seen)})"),),
        )


def _weight(seen: Sequence[Sighting[K]]) -> Tuple[int, int]:
    return len({s.node for s in seen}), len(seen)


def _count(seen: Sequence[Sighting[K]]) -> str:
    nodes = len({s.node for s in seen})
    if nodes > 1 or all(s.rank is None for s in seen):
        return f"{nodes} node" + ("s" if nodes != 1 else "")
    return f"{len(seen)} rank" + ("s" if len(seen) != 1 else "")
