"""The report as GitHub-flavoured Markdown: for a pull request, a ticket or a CI job's summary page."""

from __future__ import annotations

import re
from typing import Iterator

from chainerdoctor.findings import PASSED, SKIPPED, Finding, Report, Severity
from chainerdoctor.report.plain import one_line

_SIGNS = {Severity.ERROR: "❌", Severity.WARNING: "⚠️", Severity.INFO: "ℹ️"}
#: Findings of one rule that are listed; a job's summary page may hold 1 MiB.
_MOST = 50


def as_markdown(report: Report) -> str:
    """The report as Markdown text. Everything from elsewhere is escaped."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield f"# chainerdoctor {_escaped(report.command)}"
    yield ""
    for label, value in report.checked:
        yield f"- {_escaped(label)}: {_escaped(value)}"
    yield ""
    for table in report.tables:
        yield f"**{_escaped(table.title)}**"
        yield ""
        yield "| " + " | ".join(map(_escaped, table.columns)) + " |"
        yield "|" + " ---: |" * len(table.columns)
        for row in table.rows:
            yield "| " + " | ".join(map(_escaped, row)) + " |"
        yield ""
    passed = sum(verdict.status == PASSED for verdict in report.verdicts)
    counts = ", ".join(f"{report.count(severity)} {severity.value}" for severity in reversed(Severity))
    yield f"**{counts}** · {passed} checks passed"
    if report.judged_nothing():
        yield ""
        yield "Nothing could be judged: no rule found anything to look at."
    for verdict in report.found():
        yield ""
        yield f"## {_SIGNS[verdict.severity]} {verdict.code} {verdict.slug.replace('_', '-')}"
        yield ""
        yield _escaped(verdict.summary)
        yield ""
        for finding in verdict.findings[:_MOST]:
            yield from _finding(finding)
        if len(verdict.findings) > _MOST:
            yield f"- … and {len(verdict.findings) - _MOST} more"
    blind = report.could_not_judge()
    if blind:
        yield ""
        yield "## Could not judge"
        yield ""
        for verdict in blind:
            yield f"- {verdict.code} {verdict.slug.replace('_', '-')}: {_escaped(verdict.reason)}"
    skipped = [verdict for verdict in report.verdicts if verdict.status == SKIPPED and not verdict.blind]
    if skipped:
        yield ""
        yield f"<details><summary>{len(skipped)} rules had nothing to look at</summary>"
        yield ""
        for verdict in skipped:
            yield f"- {verdict.code} {verdict.slug.replace('_', '-')}: {_escaped(verdict.reason)}"
        yield ""
        yield "</details>"
    for note in report.notes:
        yield ""
        yield _escaped(note)


def _finding(finding: Finding) -> Iterator[str]:
    place = finding.location
    where = finding.where if place is None else f"{place.path}:{place.line}"
    yield f"- **{_escaped(where)}**: {_escaped(finding.message)}"
    for evidence in finding.evidence:
        wanted = f" (wanted: {_escaped(evidence.wanted)})" if evidence.wanted else ""
        yield f"  - {_escaped(evidence.what)}: {_escaped(evidence.seen)}{wanted}"
    yield f"  - → {_escaped(finding.remedy)}"


def _escaped(text: str) -> str:
    """Marks of Markdown and HTML are shown, not obeyed; an at-sign must not notify a stranger."""
    text = re.sub(r"([\\`*_{}\[\]<>#|~$])", r"\\\1", one_line(text).replace("&", "&amp;"))
    return text.replace("@", "@\u200b")
