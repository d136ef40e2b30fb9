"""A training run's stages, and log lines laid against them.

A stage log holds one JSON object a line, written by whatever runs the training (the runner of this project, or a few
lines in the user's script)::

    {"t": 1735689600.25, "iteration": 12, "phase": "forward", "rank": 0}

``t`` is seconds since the epoch at which the phase begins, ``iteration`` counts from 0, ``phase`` is a word such as
``forward``, ``backward``, ``allreduce``, ``update`` or ``data``; ``rank`` may be absent if there is but one. A phase
lasts until the same rank's next line. Keys that are not known are ignored.
"""

from __future__ import annotations

import bisect
import json
from typing import Dict, List, Optional, Tuple

from chainerdoctor.facts import Fact
from chainerdoctor.facts.log import LogEvent, StagedLine, StageLog
from chainerdoctor.logs.prefixes import decoded

#: Entries kept: a week of a fast training's phases on one rank.
MAX_ENTRIES = 4_000_000
#: Silences of the log that are kept, the longest.
GAPS_KEPT = 5
#: A silence shorter than this is not noted, whatever else (seconds).
SHORTEST_GAP_S = 1.0

_Entry = Tuple[float, int, str, Optional[int]]


class StageLogError(ValueError):
    """The file is not a stage log. The text is one line for the user and names the line."""


class StageReader:
    """Reads a stage log."""

    def __init__(self, path: str) -> None:
        self.path = path

    def read(self) -> Stages:
        """The stages, sorted by time.

        Raises:
            StageLogError: unreadable, a line is not such an object, or there is no line.
        """
        entries: List[_Entry] = []
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                for number, line in enumerate(file, 1):
                    if line.strip() and len(entries) < MAX_ENTRIES:
                        entries.append(self._entry(line, number))
        except OSError as error:
            raise StageLogError(f"{self.path}: {error.strerror or error}") from None
        if not entries:
            raise StageLogError(f"{self.path}: no stage in it; one JSON object a line is wanted")
        entries.sort(key=lambda e: e[0])
        return Stages(self.path, entries)

    def _entry(self, line: str, number: int) -> _Entry:
        wanted = 'wanted is {"t": seconds, "iteration": number, "phase": "word", "rank": number}'
        try:
            raw = json.loads(line)
        except (ValueError, RecursionError):
            raise StageLogError(f"{self.path}:{number}: not JSON; {wanted}") from None
        if not isinstance(raw, dict):
            raise StageLogError(f"{self.path}:{number}: not an object; {wanted}")
        t, iteration, phase, rank = (raw.get(key) for key in ("t", "iteration", "phase", "rank"))
        if (
            isinstance(t, bool)
            or not isinstance(t, (int, float))
            or not 0 <= t < 1e11
            or type(iteration) is not int
            or not isinstance(phase, str)
            or not (rank is None or type(rank) is int)
        ):
            raise StageLogError(f"{self.path}:{number}: a field is missing or of the wrong type; {wanted}")
        return float(t), iteration, phase[:80], rank


class Stages:
    """Stages in the order of time."""

    def __init__(self, path: str, entries: List[_Entry]) -> None:
        self.path = path
        self.from_s = entries[0][0]
        self.to_s = entries[-1][0]
        self._count = len(entries)
        self._by_rank: Dict[Optional[int], Tuple[List[float], List[_Entry]]] = {}
        for entry in entries:
            times, kept = self._by_rank.setdefault(entry[3], ([], []))
            times.append(entry[0])
            kept.append(entry)

    def fact(self) -> StageLog:
        """What was laid against, for the snapshot."""
        return StageLog(self.path, self._count, self.from_s, self.to_s)

    def at(self, at_s: float, rank: Optional[int]) -> Optional[_Entry]:
        """The stage that was running at a time on a rank; with no such rank, that of the lowest rank there is."""
        if rank not in self._by_rank:
            rank = min(self._by_rank, key=lambda r: -1 if r is None else r)
        times, kept = self._by_rank[rank]
        index = bisect.bisect_right(times, at_s) - 1
        # Long after the last entry the training was over.
        if index < 0 or index == len(times) - 1 and at_s - times[index] > 3600:
            return None
        return kept[index]

    def beside(self, path: str) -> Laid:
        """Something that takes a log's timed lines."""
        return Laid(path, self)


class Laid:
    """Takes the timed lines of one log in the order of the file and keeps the longest silences."""

    def __init__(self, path: str, stages: Stages) -> None:
        self._path = path
        self._stages = stages
        self._last: Optional[float] = None
        self._gaps: List[Tuple[float, int, float, float, str]] = []

    def line(self, number: int, at_s: float, line: bytes) -> None:
        """One line that carries a time."""
        last = self._last
        self._last = at_s
        if last is None or at_s - last < SHORTEST_GAP_S:
            return
        gap = at_s - last
        if len(self._gaps) < GAPS_KEPT or gap > self._gaps[0][0]:
            bisect.insort(self._gaps, (gap, number, at_s, last, decoded(line[:400])))
            del self._gaps[:-GAPS_KEPT]

    def facts(self, facts: List[Fact]) -> List[Fact]:
        """Events with a time and the longest silences, each with its stage."""
        made: List[Fact] = []
        for event in facts:
            if isinstance(event, LogEvent) and event.at_s is not None:
                rank = event.ranks[0] if event.ranks else None
                self._add(made, event.line, event.at_s, event.event, event.text, 0.0, event.at_s, rank)
        for gap, number, at_s, began, text in sorted(self._gaps, key=lambda g: g[1]):
            # The stage that counts is the one in which the silence began.
            self._add(made, number, at_s, "silence", text, gap, began, None)
        return made

    def _add(
        self,
        made: List[Fact],
        line: int,
        at_s: float,
        event: str,
        text: str,
        gap: float,
        when: float,
        rank: Optional[int],
    ) -> None:
        stage = self._stages.at(when, rank)
        if stage is not None:
            made.append(StagedLine(self._path, line, at_s, event, text[:300], gap, stage[1], stage[2], stage[3]))
