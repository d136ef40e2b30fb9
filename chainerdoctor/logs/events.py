"""Events of one file: the first of each kind is kept whole, of the others the number and who said them."""

from __future__ import annotations

from typing import Dict, List, Optional, Tuple

from chainerdoctor.facts.log import LogEvent

#: Different events kept of one file, and how many speakers are named.
MAX_EVENTS = 2000
MAX_SPEAKERS = 16
MAX_TEXT = 300


class _Seen:
    __slots__ = ("line", "text", "count", "hosts", "ranks", "at_s", "detail")

    def __init__(self, line: int, text: str, at_s: Optional[float], detail: Dict[str, str]) -> None:
        self.line = line
        self.text = text[:MAX_TEXT]
        self.count = 0
        self.hosts: Dict[str, None] = {}
        self.ranks: Dict[int, None] = {}
        self.at_s = at_s
        self.detail = detail


class Events:
    """Gathers events; see :class:`chainerdoctor.facts.log.LogEvent`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._seen: Dict[Tuple[str, Tuple[str, ...]], _Seen] = {}

    def add(
        self,
        event: str,
        line: int,
        text: str,
        *,
        host: str = "",
        rank: Optional[int] = None,
        at_s: Optional[float] = None,
        detail: Optional[Dict[str, str]] = None,
        key: Tuple[str, ...] = (),
    ) -> None:
        """Note one line. Events with the same ``key`` are counted together; too many keys fall into one."""
        place = (event, key)
        seen = self._seen.get(place)
        if seen is None:
            if len(self._seen) >= MAX_EVENTS:
                place = (event, ("others",))
                seen = self._seen.get(place)
            if seen is None:
                seen = self._seen[place] = _Seen(line, text, at_s, detail or {})
        seen.count += 1
        if host and len(seen.hosts) < MAX_SPEAKERS:
            seen.hosts[host] = None
        if rank is not None and len(seen.ranks) < MAX_SPEAKERS:
            seen.ranks[rank] = None

    def facts(self) -> List[LogEvent]:
        """The events in the order in which they first stand in the file."""
        made = [
            LogEvent(
                event,
                self.path,
                seen.line,
                seen.text,
                seen.count,
                tuple(seen.hosts),
                tuple(seen.ranks),
                seen.at_s,
                dict(seen.detail),
            )
            for (event, _), seen in self._seen.items()
        ]
        return sorted(made, key=lambda e: (e.line, e.event))
