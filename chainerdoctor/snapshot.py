"""A snapshot: everything that was seen, by whom and when. Saved as JSON, it can be judged again anywhere."""

from __future__ import annotations

import contextlib
import functools
import gc
import hashlib
import json
import os
from dataclasses import dataclass
from math import isfinite
from typing import Any, Dict, Generic, Iterable, Iterator, List, Optional, Tuple, Type, TypeVar, cast

from chainerdoctor.codec import CodecError, fact_from_json, fact_to_json
from chainerdoctor.facts import Fact, Missing

SCHEMA = 1

#: Largest snapshot file that is read, in bytes. One of 4,096 nodes × 8 ranks needs about a tenth of it.
MAX_BYTES = 1024**3

F = TypeVar("F", bound=Fact, covariant=True)
K = TypeVar("K", bound=Fact)


class SnapshotError(ValueError):
    """A file is not a snapshot that can be read. The text is one line for the user."""


@dataclass(frozen=True)
class Sighting(Generic[F]):
    """One fact, and who saw it.

    ``rank`` is ``None`` for what belongs to the node as a whole; ``at_s`` is seconds since the epoch on that node's
    own clock, ``took_s`` the seconds that its probe ran.
    """

    node: str
    rank: Optional[int]
    probe: str
    at_s: float
    took_s: float
    fact: F

    @property
    def where(self) -> str:
        """``node`` or ``node/rank N``, as findings print it."""
        return self.node if self.rank is None else f"{self.node}/rank {self.rank}"


class Snapshot:
    """An immutable collection of sightings.

    ``taken_at`` is an ISO 8601 time in UTC, ``command`` what was run, ``tool`` the version that took it.
    """

    def __init__(
        self,
        sightings: Iterable[Sighting[Fact]],
        *,
        command: str = "",
        taken_at: str = "",
        tool: str = "",
        schema: int = SCHEMA,
    ) -> None:
        self.sightings = tuple(sightings)
        self.command = command
        self.taken_at = taken_at
        self.tool = tool
        self.schema = schema
        by_kind: Dict[Type[Fact], List[Sighting[Fact]]] = {}
        for sighting in self.sightings:
            by_kind.setdefault(type(sighting.fact), []).append(sighting)
        self._by_kind = {kind: tuple(seen) for kind, seen in by_kind.items()}

    def all(self, kind: Type[K]) -> Tuple[Sighting[K], ...]:
        """Every sighting of exactly this kind of fact, in the order in which they were gathered."""
        return cast("Tuple[Sighting[K], ...]", self._by_kind.get(kind, ()))

    def has(self, kind: Type[Fact]) -> bool:
        """Whether a fact of this kind was seen at all."""
        return kind in self._by_kind

    @functools.cached_property
    def nodes(self) -> Tuple[str, ...]:
        """Names of the nodes, in the order in which they first appear (a rank that said nothing has no node)."""
        return tuple(dict.fromkeys(s.node for s in self.sightings if s.node))

    @functools.cached_property
    def ranks(self) -> Tuple[int, ...]:
        """Ranks that said anything, sorted."""
        return tuple(sorted({s.rank for s in self.sightings if s.rank is not None}))

    @property
    def missing(self) -> Tuple[Sighting[Missing], ...]:
        """What could not be seen."""
        return self.all(Missing)

    @property
    def id(self) -> str:
        """A short hash of the content: equal snapshots have equal ids."""
        return hashlib.sha256(self.dumps().encode("utf-8", "surrogatepass")).hexdigest()[:12]

    def dumps(self) -> str:
        """The snapshot as JSON text, one sighting a line, so that two of them can be compared with diff."""
        head = {"schema": self.schema, "tool": self.tool, "taken_at": self.taken_at, "command": self.command}
        # Thousands of ranks share facts (SightingReader): each object, and each name, is turned into text once.
        facts: Dict[int, str] = {}
        texts: Dict[str, str] = {}

        def fact_text(fact: Fact) -> str:
            text = facts.get(id(fact))
            if text is None:
                text = facts[id(fact)] = _SORTED.encode(fact_to_json(fact))
            return text

        def quoted(text: str) -> str:
            found = texts.get(text)
            if found is None:
                found = texts[text] = json.dumps(text)
            return found

        lines = ",\n".join(
            f'{{"at_s": {round(s.at_s, 6)!r}, "fact": {fact_text(s.fact)}, "node": {quoted(s.node)}, '
            f'"probe": {quoted(s.probe)}, "rank": {"null" if s.rank is None else s.rank}, '
            f'"took_s": {round(s.took_s, 6)!r}}}'
            for s in self.sightings
        )
        return f'{json.dumps(head)[:-1]}, "sightings": [\n{lines}\n]}}\n'


def sighting_to_json(sighting: Sighting[Fact]) -> Dict[str, Any]:
    """A sighting as a JSON object; times are rounded to microseconds."""
    return {
        "node": sighting.node,
        "rank": sighting.rank,
        "probe": sighting.probe,
        "at_s": round(sighting.at_s, 6),
        "took_s": round(sighting.took_s, 6),
        "fact": fact_to_json(sighting.fact),
    }


_NUMBERS = (float, int)
#: Facts are text with sorted keys, so that equal snapshots are equal bytes.
_SORTED = json.JSONEncoder(sort_keys=True)


class SightingReader:
    """Turns JSON objects into sightings, decoding equal facts only once.

    A snapshot of a large cluster repeats itself: 8,192 ranks see the same packages. Equal facts become one object.
    """

    def __init__(self) -> None:
        self._facts: Dict[Any, Fact] = {}

    def read(self, raw: Any) -> Sighting[Fact]:
        """The inverse of :func:`sighting_to_json`.

        Raises:
            CodecError: the value has another shape.
        """
        if type(raw) is not dict:
            raise CodecError("a sighting has to be an object")
        node, rank, probe = raw.get("node"), raw.get("rank"), raw.get("probe")
        at_s, took_s = raw.get("at_s", 0.0), raw.get("took_s", 0.0)
        if type(node) is not str or type(probe) is not str:
            raise CodecError("a sighting needs the texts 'node' and 'probe'")
        if rank is not None and type(rank) is not int:
            raise CodecError("a sighting's 'rank' has to be a whole number or null")
        if type(at_s) not in _NUMBERS or type(took_s) not in _NUMBERS or not isfinite(at_s + took_s):
            raise CodecError("a sighting's 'at_s' and 'took_s' have to be numbers")
        # What Sighting(...) does, without its frozen __setattr__: half of the time that reading takes.
        made: Sighting[Fact] = object.__new__(Sighting)
        made.__dict__.update(
            node=node, rank=rank, probe=probe, at_s=float(at_s), took_s=float(took_s), fact=self._fact(raw.get("fact"))
        )
        return made

    def _fact(self, raw: Any) -> Fact:
        try:
            # 1, 1.0 and True are equal and hash alike, so the types belong to the key.
            key = (*raw, *raw.values(), *map(type, raw.values()))
            known = self._facts.get(key)
        except (TypeError, AttributeError):  # a fact that holds a list, or no object at all
            return fact_from_json(raw)
        if known is None:
            known = self._facts[key] = fact_from_json(raw)
        return known


def sighting_from_json(raw: Any) -> Sighting[Fact]:
    """Read one sighting.

    Raises:
        CodecError: the value has another shape.
    """
    return SightingReader().read(raw)


def from_json(raw: Any) -> Snapshot:
    """Build a snapshot from JSON values.

    Raises:
        SnapshotError: this is JSON, but not a snapshot, or one whose known facts are malformed.
    """
    if not isinstance(raw, dict) or not isinstance(raw.get("sightings"), list) or type(raw.get("schema")) is not int:
        raise SnapshotError("this is JSON, but not a chainerdoctor snapshot (no 'schema' and 'sightings')")
    texts = {key: raw.get(key, "") for key in ("command", "taken_at", "tool")}
    if not all(isinstance(text, str) for text in texts.values()):
        raise SnapshotError("'command', 'taken_at' and 'tool' have to be texts")
    reader = SightingReader()
    sightings: List[Sighting[Fact]] = []
    try:
        for each in raw["sightings"]:
            sightings.append(reader.read(each))
    except CodecError as error:
        raise SnapshotError(f"sighting {len(sightings) + 1} is malformed: {error}") from None
    return Snapshot(sightings, schema=raw["schema"], **texts)


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """For reading and judging: both make many objects and no cycles, and looking for cycles takes half of the time.

    What was made stays out of later collections too (``gc.freeze``), or the first one would look through all of it.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.enable()


def loads(text: str) -> Snapshot:
    """Parse JSON text into a snapshot.

    Raises:
        SnapshotError: not JSON (cut, for example), nested too deeply, or not a snapshot.
    """
    with without_garbage_collection():
        try:
            raw = json.loads(text)
        except RecursionError:
            raise SnapshotError("the JSON is nested too deeply to be a snapshot") from None
        except ValueError as error:
            raise SnapshotError(f"not valid JSON, or cut off: {error}") from None
        return from_json(raw)


def load(path: str) -> Snapshot:
    """Read a snapshot file.

    Raises:
        SnapshotError: the file cannot be read, is larger than :data:`MAX_BYTES`, is not UTF-8 or not a snapshot; the
            text begins with the path.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            # One byte more than the limit tells a file that grows, or a pipe, from one that fits.
            content = file.read(MAX_BYTES + 1) if size <= MAX_BYTES else b""
        if size > MAX_BYTES or len(content) > MAX_BYTES:
            raise SnapshotError(f"{path}: larger than the {MAX_BYTES // 1024**2} MiB that a snapshot may have")
        return loads(content.decode("utf-8"))
    except OSError as error:
        raise SnapshotError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise SnapshotError(f"{path}: not UTF-8 text, so not a snapshot") from None
    except SnapshotError as error:
        text = str(error)
        raise SnapshotError(text if text.startswith(path) else f"{path}: {text}") from None


def merge(snapshots: Iterable[Snapshot], *, command: str) -> Snapshot:
    """One snapshot out of several, in the order given; the time is the latest of theirs."""
    parts = tuple(snapshots)
    return Snapshot(
        (sighting for part in parts for sighting in part.sightings),
        command=command,
        taken_at=max((part.taken_at for part in parts), default=""),
        tool=max((part.tool for part in parts), default=""),
        schema=max((part.schema for part in parts), default=SCHEMA),
    )
