"""How each rank's program ended, where its time went, and how whole its capture is."""

from __future__ import annotations

import statistics
from typing import Any, Dict, Iterator, List

from chainerdoctor.captures import RankCapture, Run, number
from chainerdoctor.captures.stall import aborted_at
from chainerdoctor.facts import Fact
from chainerdoctor.facts.run import CaptureState, PhaseTimes, ProgramEnd, ProgramRun
from chainerdoctor.instrument.training import PHASES
from chainerdoctor.snapshot import Sighting


def facts(run: Run) -> Iterator[Sighting[Fact]]:
    """The facts that every run has, whatever recorded it."""
    manifest = run.manifest
    instruments = manifest.get("instruments")
    wished = manifest.get("ranks")
    setup = ProgramRun(
        str(manifest.get("target", "")),
        tuple(sorted(instruments)) if isinstance(instruments, dict) else (),
        wished if isinstance(wished, int) else None,
        str(manifest.get("launcher", "")),
    )
    yield Sighting("", None, "capture", 0.0, 0.0, setup)
    for rank in run.ranks:
        capture = rank.capture
        yield rank.where(_end(run, rank))
        iterations = [each for each in capture.all("iteration") if _is_iteration(each)]
        if len(iterations) > 1:
            yield rank.where(_times(iterations[1:]))
        lost = capture.last("lost")
        counts = lost.get("records") if lost is not None else None
        numbers = {str(k): int(v) for k, v in counts.items()} if isinstance(counts, dict) else {}
        failed = {str(each.get("who", "")): str(each.get("error", "")) for each in capture.all("failed")}
        name = f"rank-{rank.rank:05d}.capture"
        yield rank.where(CaptureState(name, rank.size_bytes, capture.damage, numbers, failed))
    for name, why in run.unreadable:
        yield Sighting("", None, "capture", 0.0, 0.0, CaptureState(name, 0, (why,), {}, {}))


def _end(run: Run, rank: RankCapture) -> ProgramEnd:
    capture = rank.capture
    begin, end = capture.last("begin"), capture.last("end")
    last_s = max((number(record, "t") for record in capture.records), default=0.0) - number(begin, "t")
    if end is None or number(end, "t") > aborted_at(run):
        done = max((int(number(each, "n")) for each in capture.all("iteration")), default=0)
        codes = run.manifest.get("codes")
        code = codes.get(str(rank.rank)) if isinstance(codes, dict) else None
        return ProgramEnd("cut", code if isinstance(code, int) else None, done, "", "", last_s)
    texts = {key: str(end.get(key, "")) for key in ("error", "place")}
    return ProgramEnd(
        str(end.get("how")), int(number(end, "code")), int(number(end, "iterations")), last_s=last_s, **texts
    )


def _is_iteration(record: Dict[str, Any]) -> bool:
    spent = record.get("ns")
    return isinstance(spent, list) and len(spent) == len(PHASES) and all(type(each) is int for each in spent)


def _times(records: List[Dict[str, Any]]) -> PhaseTimes:
    walls: List[float] = []
    for each in records:
        count = max(1, int(number(each, "k", 1)))
        walls += [sum(each["ns"]) / count / 1e9] * count
    phases = {name: sum(each["ns"][at] for each in records) / 1e9 for at, name in enumerate(PHASES)}
    longest = max(number(each, "longest") for each in records) / 1e9
    return PhaseTimes(len(walls), sum(walls), statistics.median(walls), longest, phases)
