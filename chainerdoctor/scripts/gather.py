"""Paths → one snapshot, the rules that judge it, and the comments that ask for silence."""

from __future__ import annotations

import dataclasses
import hashlib
import sys
import time
from typing import Dict, Iterable, List, Optional, Set, Tuple

from chainerdoctor.facts import ERROR, Fact, Missing
from chainerdoctor.facts import script as script_facts
from chainerdoctor.facts.script import ScriptFile, ScriptsRead, ScriptSuppression, ScriptUnread
from chainerdoctor.findings import FOUND, PASSED, Finding, Report
from chainerdoctor.rules import Rule, all_rules
from chainerdoctor.scripts.project import Progress, find_sources, read_project
from chainerdoctor.snapshot import Sighting, Snapshot, without_garbage_collection

#: Frames that a walk may need: long chains of ``elif`` nest in the tree. The same on every Python.
_FRAMES = 6000


class NothingToCheckError(ValueError):
    """A path does not exist, or holds no source. The text is one line."""


def read_scripts(
    paths: Iterable[str], *, now_s: Optional[float] = None, progress: Optional[Progress] = None
) -> Snapshot:
    """Read files and folders of Python sources and notebooks; the node of each sighting is the file's path.

    A file that cannot be read or parsed becomes a fact of its own and a ``Missing`` fact for the whole, so that "nothing
    found" is not said of what was not read.

    Raises:
        NothingToCheckError: a path does not exist, or there is no source in the folders.
    """
    now_s = time.time() if now_s is None else now_s
    given = list(paths)
    try:
        sources = find_sources(given)
    except FileNotFoundError as error:
        raise NothingToCheckError(f"{error}: no such file or folder") from None
    if not sources:
        raise NothingToCheckError(f"nothing to check: no .py or .ipynb file in {', '.join(given)}")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _FRAMES))
    try:
        with without_garbage_collection():
            facts = read_project(sources, progress)
    finally:
        sys.setrecursionlimit(limit)
    sightings: List[Sighting[Fact]] = [Sighting(path, None, "script", now_s, 0.0, fact) for path, fact in facts]
    unread = [fact for _, fact in facts if isinstance(fact, ScriptUnread)]
    whole: Fact = _missing(unread, len(sources)) if unread else ScriptsRead(len(sources))
    sightings.append(Sighting("", None, "script", now_s, 0.0, whole))
    return Snapshot(sightings, command="lint", taken_at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_s)))


def _missing(unread: List[ScriptUnread], total: int) -> Missing:
    names = ", ".join(each.path for each in unread[:3]) + (f" and {len(unread) - 3} more" if len(unread) > 3 else "")
    detail = f"{len(unread)} of {total} file{'s' if total != 1 else ''} could not be read: {names}"
    return Missing("script", ERROR, detail, (ScriptsRead.__name__,))


_KINDS = frozenset(
    value
    for value in vars(script_facts).values()
    if isinstance(value, type) and issubclass(value, Fact) and value is not Fact
)


def script_rules() -> Tuple[Rule, ...]:
    """The rules that judge scripts: those that need a fact of :mod:`chainerdoctor.facts.script`."""
    return tuple(rule for rule in all_rules() if _KINDS.intersection(rule.needs))


def identity(snapshot: Snapshot) -> str:
    """A short hash of the sources: everything else in the snapshot follows from them."""
    digest = hashlib.sha256()
    for sighting in snapshot.all(ScriptFile):
        digest.update(f"{sighting.fact.path}\0{sighting.fact.sha256}\0".encode("utf-8", "surrogatepass"))
    for unread in snapshot.all(ScriptUnread):
        digest.update(f"{unread.fact.path}\0{unread.fact.reason}\0".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:12]


def checked(snapshot: Snapshot) -> Tuple[Tuple[str, str], ...]:
    """(label, value) pairs that say what was read, for a report's head."""
    files = [sighting.fact for sighting in snapshot.all(ScriptFile)]
    unread = len(snapshot.all(ScriptUnread))
    total = len(files) + unread
    said = f"{total:,} file{'s' if total != 1 else ''} ({sum(file.lines for file in files):,} lines)"
    chainer = sum(any(name.split(".")[0] in ("chainer", "chainermn") for name in file.imports) for file in files)
    pairs = [("looked at", said), ("looked at", f"{chainer:,} of them import Chainer" if total > 1 else "")]
    if total == 1:
        pairs[1] = ("looked at", "it imports Chainer" if chainer else "it does not import Chainer")
    if unread:
        pairs.append(("could not read", f"{unread:,}"))
    return tuple(pairs)


def without_suppressed(report: Report, snapshot: Snapshot) -> Report:
    """The report without findings on whose line a comment asks for silence, and a note that says how many."""
    quiet: Dict[Tuple[str, int], Set[str]] = {}
    for sighting in snapshot.all(ScriptSuppression):
        quiet.setdefault((sighting.fact.path, sighting.fact.line), set()).update(sighting.fact.codes or ("CD",))

    def wanted(code: str, finding: Finding) -> bool:
        place = finding.location
        codes = quiet.get((place.path, place.line)) if place is not None else None
        return codes is None or not any(code.startswith(each) for each in codes)

    dropped = 0
    verdicts = []
    for verdict in report.verdicts:
        kept = tuple(finding for finding in verdict.findings if wanted(verdict.code, finding))
        if len(kept) < len(verdict.findings):
            dropped += len(verdict.findings) - len(kept)
            verdict = dataclasses.replace(verdict, findings=kept, status=FOUND if kept else PASSED)
        verdicts.append(verdict)
    if not dropped:
        return report
    note = f"{dropped} finding{'s' if dropped != 1 else ''} silenced by 'chainerdoctor: ignore' comments."
    return dataclasses.replace(report, verdicts=tuple(verdicts), notes=(*report.notes, note))
