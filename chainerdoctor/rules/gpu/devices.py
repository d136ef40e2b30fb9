"""What rules about GPUs share: naming devices, one finding a node, and the odd device among its peers."""

from __future__ import annotations

from typing import Callable, Dict, Iterable, Iterator, List, Optional, Sequence, Tuple, TypeVar

from chainerdoctor.facts import Fact
from chainerdoctor.facts.gpu import Gpu
from chainerdoctor.findings import Evidence, Finding
from chainerdoctor.snapshot import Sighting, Snapshot

K = TypeVar("K", bound=Fact)

_MOST_EVIDENCE = 8


def number(fact: Fact) -> int:
    """The index of the device that a fact is about."""
    index: int = fact.index if hasattr(fact, "index") else fact.gpu  # type: ignore[attr-defined]
    return index


def device_list(indices: Iterable[int]) -> str:
    """``GPU 3``, ``GPUs 0–3``, ``GPUs 0, 2``."""
    ordered = sorted(set(indices))
    runs: List[Tuple[int, int]] = []
    for index in ordered:
        if runs and index == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], index)
        else:
            runs.append((index, index))
    texts = [str(first) if first == last else f"{first}–{last}" for first, last in runs]
    return f"GPU{'s' if len(ordered) > 1 else ''} {', '.join(texts)}"


def per_node(
    sightings: Iterable[Sighting[K]], fault: Callable[[K], Optional[Tuple[str, str, str]]], message: str, remedy: str
) -> Iterator[Finding]:
    """One finding for each node with a faulty device.

    ``fault`` gives (what, seen, wanted) for a faulty device and ``None`` for a healthy one. ``{gpus}`` in ``remedy``
    becomes the numbers of the faulty devices, joined by commas as nvidia-smi -i takes them.
    """
    by_node: Dict[str, List[Tuple[int, Tuple[str, str, str]]]] = {}
    for seen in sightings:
        found = fault(seen.fact)
        if found is not None:
            by_node.setdefault(seen.node, []).append((number(seen.fact), found))
    for node, faulty in by_node.items():
        indices = sorted({index for index, _ in faulty})
        yield Finding(
            where=f"{node}/{device_list(indices)}",
            message=message,
            remedy=remedy.replace("{gpus}", ",".join(str(index) for index in indices)),
            evidence=_evidence(faulty),
        )


def everywhere(
    sightings: Iterable[Sighting[K]], fault: Callable[[K], Optional[Tuple[str, str, str]]], message: str, remedy: str
) -> Iterator[Finding]:
    """As :func:`per_node`, but one finding for all nodes: for settings, which are wrong on many nodes at once.

    The evidence is that of the first faulty device of each node.
    """
    findings = tuple(per_node(sightings, fault, message, remedy))
    if not findings:
        return
    places = [finding.where for finding in findings]
    rest = len(places) - 3
    more = f" and {rest} more node{'s' if rest > 1 else ''}" if rest > 0 else ""
    evidence = []
    for finding in findings[:_MOST_EVIDENCE]:
        first = finding.evidence[0]
        evidence.append(Evidence(f"{finding.where}: {first.what.split(': ', 1)[1]}", first.seen, first.wanted))
    yield Finding(", ".join(places[:3]) + more, message, findings[0].remedy, tuple(evidence))


def _evidence(faulty: Sequence[Tuple[int, Tuple[str, str, str]]]) -> Tuple[Evidence, ...]:
    listed = [Evidence(f"GPU {index}: {what}", seen, wanted) for index, (what, seen, wanted) in faulty]
    if len(listed) > _MOST_EVIDENCE:
        rest = len(listed) - _MOST_EVIDENCE + 1
        listed = [*listed[: _MOST_EVIDENCE - 1], Evidence("and", f"{rest} more like these")]
    return tuple(listed)


def models(snapshot: Snapshot) -> Dict[Tuple[str, int], str]:
    """The product name of every device by node and index."""
    return {(seen.node, seen.fact.index): seen.fact.name for seen in snapshot.all(Gpu)}


def unlike_peers(
    snapshot: Snapshot, sightings: Iterable[Sighting[K]], value: Callable[[K], Optional[int]]
) -> Dict[Tuple[str, int], Tuple[int, int]]:
    """Devices whose value differs from that of most devices of the same model, as (own, usual).

    Only where more than half of at least three peers agree: with fewer nobody can be called odd.
    """
    named = models(snapshot)
    by_model: Dict[str, Dict[Tuple[str, int], int]] = {}
    for seen in sightings:
        place = (seen.node, number(seen.fact))
        told = value(seen.fact)
        if told is not None and place in named:
            by_model.setdefault(named[place], {})[place] = told
    odd: Dict[Tuple[str, int], Tuple[int, int]] = {}
    for told_by in by_model.values():
        values = sorted(told_by.values())
        usual = max(set(values), key=lambda each: (values.count(each), each))
        if len(values) >= 3 and 2 * values.count(usual) > len(values):
            odd.update({place: (own, usual) for place, own in told_by.items() if own != usual})
    return odd
