"""What the doctor says: findings with evidence, verdicts of rules, and the report that holds them."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Optional, Tuple, Union


class Severity(str, enum.Enum):
    """How bad it is. The order is that of the definition: ``Severity.INFO.rank < Severity.ERROR.rank``."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def rank(self) -> int:
        """0, 1 or 2, for comparing and sorting."""
        return _RANKS[self.value]


_RANKS = {"info": 0, "warning": 1, "error": 2}

#: States of a verdict.
PASSED = "passed"
FOUND = "found"
SKIPPED = "skipped"
CRASHED = "crashed"


@dataclass(frozen=True)
class Evidence:
    """One thing that was seen, beside what was wanted. All three are texts that a person reads."""

    what: str
    seen: str
    wanted: str = ""


@dataclass(frozen=True)
class Location:
    """A place in a file (a log, a training script); ``line`` and ``column`` count from 1, 0 means "the whole file"."""

    path: str
    line: int = 0
    column: int = 0


@dataclass(frozen=True)
class Finding:
    """One complaint: where, what is wrong, and how to mend it.

    ``message`` says what is wrong in one sentence, ``remedy`` starts with an imperative and ``evidence`` holds the
    numbers. ``location`` is set where the complaint is about a file.
    """

    where: str
    message: str
    remedy: str
    evidence: Tuple[Evidence, ...] = ()
    location: Optional[Location] = None


@dataclass(frozen=True)
class Verdict:
    """What one rule made of one snapshot.

    ``status`` is ``passed``, ``found``, ``skipped`` (what it needs was not seen; ``reason`` says why) or ``crashed``
    (the rule itself broke). ``blind`` is set on a skipped verdict if a probe failed, as against there being nothing to
    judge on this machine.
    """

    code: str
    slug: str
    severity: Severity
    status: str
    summary: str = ""
    reason: str = ""
    blind: bool = False
    findings: Tuple[Finding, ...] = ()


@dataclass(frozen=True)
class Table:
    """Measurements for people and machines; ``rows`` hold as many texts as there are ``columns``, numbers as text."""

    title: str
    columns: Tuple[str, ...]
    rows: Tuple[Tuple[str, ...], ...]


@dataclass(frozen=True)
class Series:
    """Points of one line in a chart; NaN and infinities leave gaps. ``style`` is ``line``, ``points`` or ``dashed``."""

    name: str
    x: Tuple[float, ...]
    y: Tuple[float, ...]
    style: str = "line"


@dataclass(frozen=True)
class LineChart:
    """Lines over a common axis. A logarithmic axis leaves out what is not above 0. ``marks`` are (x, word) for events."""

    title: str
    x_label: str
    y_label: str
    series: Tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    marks: Tuple[Tuple[float, str], ...] = ()


@dataclass(frozen=True)
class HeatMap:
    """Colours in rows and columns. ``cells[row][column]`` is a number, ``None`` (nothing was seen) or NaN or an infinity,
    which are drawn as such. ``unit`` says what the numbers are."""

    title: str
    rows: Tuple[str, ...]
    columns: Tuple[str, ...]
    cells: Tuple[Tuple[Optional[float], ...], ...]
    unit: str


@dataclass(frozen=True)
class BarChart:
    """One bar a row, stacked from parts: ``values[row][part]`` in ``unit``, none below 0."""

    title: str
    rows: Tuple[str, ...]
    parts: Tuple[str, ...]
    values: Tuple[Tuple[float, ...], ...]
    unit: str


Chart = Union[LineChart, HeatMap, BarChart]


@dataclass(frozen=True)
class Report:
    """All verdicts about one snapshot, and what a reader needs to place them.

    ``checked`` are (label, value) pairs that say what was looked at ("2 ranks on 1 node"), for people. ``tables`` and
    ``charts`` hold what was measured, where a command measures.
    """

    tool: str
    command: str
    snapshot_id: str
    taken_at: str
    verdicts: Tuple[Verdict, ...]
    checked: Tuple[Tuple[str, str], ...] = ()
    notes: Tuple[str, ...] = field(default=())
    tables: Tuple[Table, ...] = field(default=())
    charts: Tuple[Chart, ...] = field(default=())

    def found(self) -> Tuple[Verdict, ...]:
        """Verdicts with findings, the worst first, then by code."""
        found = [v for v in self.verdicts if v.status == FOUND]
        return tuple(sorted(found, key=lambda v: (-v.severity.rank, v.code)))

    def count(self, severity: Severity) -> int:
        """Number of findings (not verdicts) of this severity."""
        return sum(len(v.findings) for v in self.found() if v.severity is severity)

    def could_not_judge(self) -> Tuple[Verdict, ...]:
        """Verdicts that are missing through a fault: a rule crashed or a probe that it needs was blind."""
        return tuple(v for v in self.verdicts if v.status == CRASHED or (v.status == SKIPPED and v.blind))

    def exit_code(self, fail_on: Severity) -> int:
        """0 nothing at or above ``fail_on``, 1 findings, 3 could not judge. Findings outrank blindness."""
        if any(v.severity.rank >= fail_on.rank for v in self.found()):
            return 1
        return 3 if self.could_not_judge() or self.judged_nothing() else 0

    def judged_nothing(self) -> bool:
        """Whether not one rule had anything to look at, so that "nothing found" would mean nothing."""
        return not any(v.status in (PASSED, FOUND) for v in self.verdicts)
