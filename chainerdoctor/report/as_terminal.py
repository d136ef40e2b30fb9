"""The report for a person at a terminal: the worst first, its evidence, and what to type. Readable without colour."""

from __future__ import annotations

import io
from typing import Dict, Iterator, List, Tuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from chainerdoctor.findings import CRASHED, PASSED, SKIPPED, Evidence, Finding, Report, Severity, Table, Verdict
from chainerdoctor.report.plain import ascii_only, one_line
from chainerdoctor.report.text_chart import as_text

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "cyan"}
_SIGNS = {Severity.ERROR: "✗", Severity.WARNING: "!", Severity.INFO: "i"}
#: Findings of one rule that are printed; the rest is counted. All of them are in the other forms.
_MOST = 20
#: Words before a value line up in columns of at most this width.
_LABEL = 24


def as_terminal(report: Report, *, width: int = 80, colour: bool = False, unicode: bool = True) -> str:
    """The report as text of at most ``width`` columns, with ANSI colours if ``colour``."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=max(width, 20),
        force_terminal=colour,
        no_color=not colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in _parts(report):
        console.print(part)
    # rich pads lines with blanks, which wrap in terminals that became narrower.
    text = "\n".join(line.rstrip() for line in out.getvalue().split("\n"))
    return text if unicode else ascii_only(text)


def _parts(report: Report) -> Iterator[object]:
    found = report.found()
    yield _head(report)
    for table in report.tables:
        yield ""
        yield Text(_table(table), no_wrap=True, overflow="ellipsis")
    for chart in report.charts:
        yield ""
        yield Text(as_text(chart), no_wrap=True, overflow="crop")
    for verdict in found:
        yield ""
        yield from _verdict(verdict)
    if found:
        yield ""
    yield from _blind(report)
    yield _closing(report)
    for note in report.notes:
        yield Text(one_line(note))
    yield from _not_judged(report)


def _head(report: Report) -> Text:
    pairs = [one_line(value if label == "looked at" else f"{label} {value}") for label, value in report.checked]
    return Text(
        f"chainerdoctor {one_line(report.command)}: {', '.join(pairs)}" if pairs else f"chainerdoctor {report.command}"
    )


def _table(table: Table) -> str:
    """Columns as narrow as what they hold; numbers to the right."""
    lines = [table.columns, *table.rows]
    widths = [max(len(one_line(line[column])) for line in lines) for column in range(len(table.columns))]
    texts = ["  ".join(one_line(cell).rjust(width) for cell, width in zip(line, widths)) for line in lines]
    return "\n".join([one_line(table.title), *(text.rstrip() for text in texts)])


def _verdict(verdict: Verdict) -> Iterator[object]:
    style = _STYLES[verdict.severity]
    title = Text()
    title.append(f"{_SIGNS[verdict.severity]} {verdict.code} {verdict.severity.value}", style=style)
    title.append(f"  {verdict.slug.replace('_', '-')}")
    yield title
    for finding in verdict.findings[:_MOST]:
        yield from _finding(finding)
    left = len(verdict.findings) - _MOST
    if left > 0:
        yield Padding(Text(f"… and {left} more like these (--format json has them all)"), (0, 0, 0, 2))


def _finding(finding: Finding) -> Iterator[object]:
    line = Text()
    line.append(f"{one_line(_place(finding))}: ", style="bold")
    line.append(one_line(finding.message))
    yield Padding(line, (0, 0, 0, 2))
    for evidence in finding.evidence:
        yield from _evidence(evidence)
    yield Padding(Text(f"→ {one_line(finding.remedy)}", style="green"), (0, 0, 0, 4))


def _place(finding: Finding) -> str:
    place = finding.location
    if place is None:
        return finding.where
    numbers = [str(number) for number in (place.line, place.column) if number]
    return ":".join([place.path, *numbers])


def _evidence(evidence: Evidence) -> Iterator[Padding]:
    label = one_line(evidence.what)
    lines = [one_line(line) for line in evidence.seen.splitlines() if line.strip()] or [""]
    first = f"{label}: {lines[0]}"
    wanted = f" (wanted: {one_line(evidence.wanted)})" if evidence.wanted else ""
    if len(lines) == 1:
        yield Padding(Text(first + wanted), (0, 0, 0, 4))
        return
    yield Padding(Text(f"{label}:{wanted}"), (0, 0, 0, 4))
    for line in lines:
        yield Padding(Text(line), (0, 0, 0, 6))


def _blind(report: Report) -> Iterator[Text]:
    """What is missing from the judgement through a fault, one line a fault."""
    faults: Dict[str, List[str]] = {}
    for verdict in report.could_not_judge():
        word = "the rule crashed" if verdict.status == CRASHED else "could not judge"
        faults.setdefault(f"{word}: {one_line(verdict.reason)}", []).append(verdict.code)
    for fault, codes in faults.items():
        yield Text(f"? {', '.join(codes)} {fault}", style="magenta")


def _closing(report: Report) -> Text:
    passed = sum(verdict.status == PASSED for verdict in report.verdicts)
    counts = [(report.count(s), s) for s in (Severity.ERROR, Severity.WARNING, Severity.INFO)]
    words = [f"{n} {_plural(n, s)}" for n, s in counts if n]
    checks = f"{passed} check{'s' if passed != 1 else ''} passed"
    if words:
        worst = next(severity for n, severity in counts if n)
        return Text(f"{', '.join(words)}; {checks}.", style=_STYLES[worst])
    if report.could_not_judge():
        return Text(f"Nothing found, but not everything could be judged; {checks}.", style="bold magenta")
    if report.judged_nothing():
        return Text("Nothing could be judged: no rule found anything to look at.", style="bold magenta")
    return Text(f"✓ All clear: {checks}.", style="bold green")


def _plural(count: int, severity: Severity) -> str:
    if severity is Severity.INFO:
        return "hint" if count == 1 else "hints"
    return severity.value if count == 1 else f"{severity.value}s"


def _not_judged(report: Report) -> Iterator[Text]:
    """Rules that had nothing to look at, by reason: people have to know what an all-clear does not cover.

    Rules whose facts belong to other commands (``not looked at``) would only be noise here.
    """
    reasons: Dict[str, List[str]] = {}
    for verdict in report.verdicts:
        if verdict.status == SKIPPED and not verdict.blind and not verdict.reason.startswith("not looked at"):
            reasons.setdefault(verdict.reason, []).append(verdict.code)
    lines: List[Tuple[str, List[str]]] = sorted(reasons.items(), key=lambda item: (-len(item[1]), item[0]))
    for reason, codes in lines:
        yield Text(f"Not judged: {len(codes)} rule{'s' if len(codes) != 1 else ''} ({one_line(reason)})", style="dim")
