"""The report as JUnit XML, in the dialect that Jenkins' xunit plugin publishes a schema for (junit-10.xsd)."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import Iterator

from chainerdoctor.findings import CRASHED, FOUND, SKIPPED, Finding, Report, Severity, Verdict
from chainerdoctor.report.plain import plain
from chainerdoctor.rules import FAMILIES


def as_junit(report: Report) -> str:
    """One suite per family, one test case per rule; errors and warnings fail, hints are printed, blindness errs.

    A rule that had nothing to look at is skipped with its reason.
    """
    root = ET.Element("testsuites", name=f"chainerdoctor {plain(report.command)}")
    for prefix, family in FAMILIES.items():
        verdicts = [verdict for verdict in report.verdicts if verdict.code.startswith(prefix)]
        if verdicts:
            _suite(root, f"{prefix} {family}", verdicts, report)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, name: str, verdicts: list[Verdict], report: Report) -> None:
    failed = [verdict for verdict in verdicts if _fails(verdict)]
    blind = [verdict for verdict in verdicts if _errs(verdict)]
    suite = ET.SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(len(verdicts)),
        failures=str(len(failed)),
        errors=str(len(blind)),
        skipped=str(sum(verdict.status == SKIPPED and not verdict.blind for verdict in verdicts)),
        time="0",
        timestamp=report.taken_at.rstrip("Z"),
    )
    for verdict in verdicts:
        case = ET.SubElement(
            suite, "testcase", name=f"{verdict.code} {verdict.slug}", classname=f"chainerdoctor.{name}", time="0"
        )
        if _fails(verdict):
            first = plain(f"{verdict.findings[0].where}: {verdict.findings[0].message}")
            failure = ET.SubElement(case, "failure", type=verdict.severity.value, message=first)
            failure.text = plain("\n\n".join(_text(finding) for finding in verdict.findings))
        elif _errs(verdict):
            ET.SubElement(case, "error", type="could-not-judge", message=plain(verdict.reason))
        elif verdict.status == SKIPPED:
            ET.SubElement(case, "skipped", message=plain(verdict.reason))
        elif verdict.status == FOUND:
            ET.SubElement(case, "system-out").text = plain("\n\n".join(_text(finding) for finding in verdict.findings))


def _fails(verdict: Verdict) -> bool:
    return verdict.status == FOUND and verdict.severity is not Severity.INFO


def _errs(verdict: Verdict) -> bool:
    return verdict.status == CRASHED or (verdict.status == SKIPPED and verdict.blind)


def _text(finding: Finding) -> str:
    return "\n".join(_lines(finding))


def _lines(finding: Finding) -> Iterator[str]:
    yield f"{finding.where}: {finding.message}"
    if finding.location is not None:
        yield f"  at {finding.location.path}:{finding.location.line}"
    for evidence in finding.evidence:
        wanted = f" (wanted: {evidence.wanted})" if evidence.wanted else ""
        yield f"  {evidence.what}: {evidence.seen}{wanted}"
    yield f"  remedy: {finding.remedy}"
