"""From captures to facts. Pure but for reading the files: the same run gives the same snapshot."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from chainerdoctor import __version__
from chainerdoctor.facts import SILENT, Fact, Missing
from chainerdoctor.instrument.recording import manifest_of
from chainerdoctor.instrument.spool import Capture, read_capture
from chainerdoctor.snapshot import Sighting, Snapshot


class RunError(ValueError):
    """A folder is not a run that can be read. The text is one line for the user."""


@dataclass(frozen=True)
class RankCapture:
    """What one rank recorded; ``children`` are the processes that it forked and that trained as well."""

    rank: int
    node: str
    capture: Capture
    size_bytes: int
    children: Tuple[Capture, ...] = ()

    def where(self, fact: Fact, at_s: float = 0.0) -> Sighting[Fact]:
        """A fact that this rank's capture tells."""
        return Sighting(self.node, self.rank, "capture", at_s, 0.0, fact)


@dataclass(frozen=True)
class Run:
    """A run's folder: its manifest, the ranks that recorded something, and the files that could not be read."""

    folder: str
    manifest: Dict[str, Any]
    ranks: Tuple[RankCapture, ...]
    unreadable: Tuple[Tuple[str, str], ...]

    @property
    def size(self) -> int:
        """Number of ranks that there should be."""
        told = [int(number(each.capture.last("begin"), "size", 1)) for each in self.ranks]
        return max([*told, int(number(self.manifest, "ranks", 1)), 1])


#: Makes facts of what one instrument recorded.
Analysis = Callable[[Run], Iterator[Sighting[Fact]]]


def read_run(folder: Path) -> Run:
    """Read a run's folder.

    Raises:
        RunError: there is no run in it.
    """
    try:
        manifest = manifest_of(folder)
    except FileNotFoundError:
        raise RunError(f"{folder}: there is no run of chainerdoctor (no run.json)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{folder}: {error}") from None
    captures: Dict[str, Capture] = {}
    unreadable: List[Tuple[str, str]] = []
    for path in sorted(folder.glob("*.capture")):
        try:
            captures[path.name] = read_capture(str(path))
        except (OSError, ValueError) as error:
            unreadable.append((path.name, getattr(error, "strerror", None) or str(error)))
    ranks = []
    for name, capture in captures.items():
        begin = capture.last("begin")
        if begin is None or not isinstance(begin.get("rank"), int):
            if ".child-" not in name:
                unreadable.append((name, "it does not say whose it is"))
            continue
        stem = name[: -len(".capture")]
        children = tuple(other for key, other in captures.items() if key.startswith(f"{stem}.child-"))
        size = (folder / name).stat().st_size
        ranks.append(RankCapture(begin["rank"], str(begin.get("node", "")), capture, size, children))
    ranks.sort(key=lambda each: each.rank)
    return Run(str(folder), manifest, tuple(ranks), tuple(unreadable))


def snapshot_of(run: Run) -> Snapshot:
    """Everything that the captures tell, by every analysis."""
    from chainerdoctor.captures import comm, gradients, stall, timeline

    analyses: Tuple[Analysis, ...] = (timeline.facts, gradients.facts, stall.facts, comm.facts)
    sightings: List[Sighting[Fact]] = []
    for analysis in analyses:
        sightings += analysis(run)
    heard = {each.rank for each in run.ranks}
    for rank in sorted(set(range(run.size)) - heard):
        reason = next((why for name, why in run.unreadable if name.startswith(f"rank-{rank:05d}.")), "no capture")
        sightings.append(
            Sighting("", rank, "capture", 0.0, 0.0, Missing("capture", SILENT, f"rank {rank}: {reason}", _kinds()))
        )
    started = run.manifest.get("started_s")
    at = time.gmtime(started if isinstance(started, (int, float)) else 0)
    return Snapshot(
        sightings,
        command=str(run.manifest.get("command", "")),
        taken_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", at),
        tool=__version__,
    )


def _kinds() -> Tuple[str, ...]:
    return ("ProgramEnd", "PhaseTimes", "CaptureState")


def number(record: Optional[Dict[str, Any]], key: str, default: float = 0.0) -> float:
    """A number of a record, or the default where it is another thing: captures are data from elsewhere."""
    value = None if record is None else record.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else default
