"""From the rings of a run's ranks to where each rank was last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List

from chainerdoctor.captures import Run, number
from chainerdoctor.facts import Fact
from chainerdoctor.facts.stall import StallWatch
from chainerdoctor.instrument.ring import RingContent, read_ring, ring_path
from chainerdoctor.instrument.stall import DEATHS, VERDICT
from chainerdoctor.instrument.whereabouts import whereabouts
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
    died = [] if aborted or interrupted else _died(run, rings)
    for rank, ring in sorted(rings.items()):
        node = ring.head.get("node")
        yield Sighting(
            node if isinstance(node, str) else "", rank, "ring", 0.0, 0.0, whereabouts(ring, 0.0, rank in died)
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

    Told by the parent that saw the processes go or, without one, by a survivor's watcher.
    """
    order: List[Any] = []
    told = _object(run, DEATHS).get("order")
    if isinstance(told, list):
        order += told
    for ring in rings.values():
        seen = ring.beat.get("gone")
        order += seen if isinstance(seen, list) else []
    first = next((rank for rank in order if isinstance(rank, int) and rank in rings), None)
    # Where a program ended by itself before, others that are gone were ended by MPI for it.
    return [] if first is None or any(ring.end is not None for ring in rings.values()) else [first]


def _object(run: Run, name: str) -> Dict[str, Any]:
    try:
        made = json.loads((Path(run.folder) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}
