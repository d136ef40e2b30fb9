"""From the rings of a run's ranks to where each rank was last."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any, Dict, Iterator, List

from chainerdoctor.captures import Run, number
from chainerdoctor.facts import Fact
from chainerdoctor.facts.stall import StallWatch
from chainerdoctor.instrument.ring import RingContent, read_ring, ring_path
from chainerdoctor.instrument.stall import DEATHS, VERDICT
from chainerdoctor.instrument.whereabouts import FROZEN_S, whereabouts
from chainerdoctor.snapshot import Sighting


def facts(run: Run) -> Iterator[Sighting[Fact]]:
    """Nothing, where no ring was kept."""
    instruments = run.manifest.get("instruments")
    options = instruments.get("stall") if isinstance(instruments, dict) else None
    rings = _rings(run)
    if not isinstance(options, dict) or not rings:
        return
    verdict = _object(run, VERDICT)
    aborted, interrupted = verdict.get("aborted") is True, run.manifest.get("interrupted") is True
    sentence = verdict.get("sentence")
    size = max(run.size, int(max(number(ring.head, "size") for ring in rings.values())))
    watch = StallWatch(
        number(options, "timeout_s", 60.0), size, sentence if isinstance(sentence, str) else "", aborted, interrupted
    )
    yield Sighting("", None, "ring", 0.0, 0.0, watch)
    ended_s = aborted_at(run)
    rings = {rank: _before(ring, ended_s, watch.timeout_s) for rank, ring in rings.items()}
    died = [] if aborted or interrupted else _died(run, rings)
    last_s = max(number(ring.beat, "t") for ring in rings.values())
    for rank, ring in sorted(rings.items()):
        node = ring.head.get("node")
        quiet_s = last_s - number(ring.beat, "t")
        seen = whereabouts(ring, 0.0, rank in died, quiet_s if quiet_s > FROZEN_S / 2 else 0.0)
        yield Sighting(node if isinstance(node, str) else "", rank, "ring", 0.0, 0.0, seen)


def aborted_at(run: Run) -> float:
    """When the autopsy ended the program (seconds since the epoch); infinity where it did not."""
    verdict = _object(run, VERDICT)
    return number(verdict, "t", math.inf) if verdict.get("aborted") is True else math.inf


def _before(ring: RingContent, ended_s: float, timeout_s: float) -> RingContent:
    """The ring as the verdict met it: a call that fails once other ranks have been ended is none of the cause.

    When that call began is not kept; the verdict says that it had lasted for the timeout.
    """
    if ring.end is None or number(ring.end, "t") <= ended_s:
        return ring
    last = ring.calls[-1] if ring.calls else {}
    began_ns = int(number(ring.beat, "mono") - timeout_s * 1e9)
    return dataclasses.replace(
        ring, end=None, inside=last or None, inside_number=int(number(last, "n")), changed_ns=began_ns
    )


def _rings(run: Run) -> Dict[int, RingContent]:
    made: Dict[int, RingContent] = {}
    for path in sorted(Path(run.folder).glob("rank-*.ring")):
        try:
            ring = read_ring(path)
        except (OSError, ValueError):
            continue
        rank = ring.head.get("rank")
        if isinstance(rank, int) and path == ring_path(Path(run.folder), rank):
            made[rank] = ring
    return made


def _died(run: Run, rings: Dict[int, RingContent]) -> List[int]:
    """The rank whose process was gone first, without a last word; what came after it was ended for it.

    Told by the parent that saw the processes go or, without one, by a survivor's watcher. Of several that were gone at
    the same look it is the one that had come least far: the others went on until they needed it.
    """
    if any(ring.end is not None for ring in rings.values()):
        return []  # a program ended by itself before; others that are gone were ended by MPI for it
    told = _object(run, DEATHS).get("order")
    groups: List[Any] = told if isinstance(told, list) else []
    groups = groups + [[rank] for ring in rings.values() for rank in _list(ring.beat.get("gone"))]
    for together in groups:
        ranks = [rank for rank in _list(together) if isinstance(rank, int) and rank in rings]
        if ranks:
            made = {rank: (_came(rings[rank]), bool(rings[rank].inside_number)) for rank in ranks}
            return [rank for rank in ranks if made[rank] == min(made.values())]
    return []


def _came(ring: RingContent) -> float:
    """How far a rank had come in the rows of its collectives."""
    return sum({str(call.get("comm")): number(call, "i") for call in ring.calls}.values())


def _list(value: Any) -> List[Any]:
    return value if isinstance(value, list) else []


def _object(run: Run, name: str) -> Dict[str, Any]:
    try:
        made = json.loads((Path(run.folder) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}
