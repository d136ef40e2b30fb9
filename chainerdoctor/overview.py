"""What a snapshot is of, in a few pairs of words: the head of every report. Pure."""

from __future__ import annotations

from typing import Callable, Iterable, Iterator, List, Optional, Tuple, TypeVar

from chainerdoctor.facts import Fact
from chainerdoctor.facts.gpu import Gpu, GpuDriver
from chainerdoctor.facts.mpi import LauncherOutcome, MpiLibrary, RankOutcome
from chainerdoctor.facts.stack import Distribution, Interpreter
from chainerdoctor.snapshot import Sighting, Snapshot

K = TypeVar("K", bound=Fact)


def overview(snapshot: Snapshot) -> Tuple[Tuple[str, str], ...]:
    """(label, value) pairs; where nodes differ, the values are listed with the most frequent first."""
    pairs = list(_size(snapshot))
    launcher = _most(snapshot.all(LauncherOutcome), lambda fact: fact.launcher)
    pairs += _pair("launcher", launcher)
    pairs += _pair("Python", _most(snapshot.all(Interpreter), lambda fact: fact.version))
    for name, label in (("chainer", "Chainer"), ("numpy", "NumPy")):
        found = [seen for seen in snapshot.all(Distribution) if seen.fact.name == name]
        pairs += _pair(label, _most(found, lambda fact: fact.version))
    cupy = [seen for seen in snapshot.all(Distribution) if seen.fact.name.startswith("cupy")]
    pairs += _pair("CuPy", _most(cupy, lambda fact: f"{fact.name} {fact.version}"))
    pairs += _pair("MPI", _most(snapshot.all(MpiLibrary), lambda fact: f"{fact.vendor} {fact.version}"))
    pairs += _pair("driver", _most(snapshot.all(GpuDriver), lambda fact: fact.version))
    pairs += _pair("GPUs", _gpus(snapshot))
    return tuple(pairs)


def _size(snapshot: Snapshot) -> Iterator[Tuple[str, str]]:
    nodes, ranks = len(snapshot.nodes), len(snapshot.ranks)
    wanted = len(snapshot.all(RankOutcome))
    complete = sum(seen.fact.state == "complete" for seen in snapshot.all(RankOutcome))
    if wanted:
        heard = f"{wanted} ranks" if complete == wanted else f"{complete} of {wanted} ranks"
        heard = heard[:-1] if wanted == 1 else heard
        yield "looked at", f"{heard} on {_nodes(snapshot.nodes)}" if nodes else heard
    elif nodes:
        yield "looked at", _nodes(snapshot.nodes) + (f", {ranks} ranks" if ranks > 1 else "")


def _nodes(nodes: Tuple[str, ...]) -> str:
    names = ", ".join(nodes) if len(nodes) <= 4 else f"{nodes[0]} … {nodes[-1]}"
    return f"{len(nodes)} node{'s' if len(nodes) != 1 else ''} ({names})"


def _pair(label: str, value: Optional[str]) -> List[Tuple[str, str]]:
    return [] if value is None else [(label, value)]


def _most(sightings: Iterable[Sighting[K]], value: Callable[[K], str]) -> Optional[str]:
    counts: dict[str, int] = {}
    for seen in sightings:
        counts[value(seen.fact)] = counts.get(value(seen.fact), 0) + 1
    if not counts:
        return None
    ordered = sorted(counts, key=lambda text: (-counts[text], text))
    return ", ".join(ordered[:3]) + (f" and {len(ordered) - 3} more" if len(ordered) > 3 else "")


def _gpus(snapshot: Snapshot) -> Optional[str]:
    counts: dict[str, int] = {}
    for seen in snapshot.all(Gpu):
        counts[seen.fact.name] = counts.get(seen.fact.name, 0) + 1
    return ", ".join(f"{count}× {name}" for name, count in sorted(counts.items())) or None
