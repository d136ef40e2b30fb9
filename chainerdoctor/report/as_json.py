"""The report for machines. Its schema is ``report/schema.json``, which ``chainerdoctor schema`` prints."""

from __future__ import annotations

import json
import pkgutil
from typing import Any, Dict

from chainerdoctor.findings import Finding, Report, Severity, Verdict

SCHEMA = 1


def as_json(report: Report) -> str:
    """The report as JSON text. Verdicts come in the order of their codes."""
    return json.dumps(report_to_json(report), indent=2) + "\n"


def report_to_json(report: Report) -> Dict[str, Any]:
    """The report as JSON values; ``tables`` only where something was measured."""
    made = {
        "schema": SCHEMA,
        "tool": report.tool,
        "command": report.command,
        "snapshot_id": report.snapshot_id,
        "taken_at": report.taken_at,
        "checked": [{"label": label, "value": value} for label, value in report.checked],
        "notes": list(report.notes),
        "counts": {severity.value: report.count(severity) for severity in Severity},
        "verdicts": [verdict_to_json(verdict) for verdict in report.verdicts],
    }
    if report.tables:
        made["tables"] = [
            {"title": table.title, "columns": list(table.columns), "rows": [list(row) for row in table.rows]}
            for table in report.tables
        ]
    return made


def verdict_to_json(verdict: Verdict) -> Dict[str, Any]:
    """One verdict as JSON values; goldens in ``fixtures/rules`` have this form."""
    return {
        "code": verdict.code,
        "slug": verdict.slug,
        "severity": verdict.severity.value,
        "status": verdict.status,
        "summary": verdict.summary,
        "reason": verdict.reason,
        "blind": verdict.blind,
        "findings": [_finding_to_json(finding) for finding in verdict.findings],
    }


def _finding_to_json(finding: Finding) -> Dict[str, Any]:
    made: Dict[str, Any] = {
        "where": finding.where,
        "message": finding.message,
        "remedy": finding.remedy,
        "evidence": [{"what": e.what, "seen": e.seen, "wanted": e.wanted} for e in finding.evidence],
    }
    if finding.location is not None:
        place = finding.location
        made["location"] = {"path": place.path, "line": place.line, "column": place.column}
    return made


def schema_text() -> str:
    """The JSON Schema of the report."""
    data = pkgutil.get_data("chainerdoctor.report", "schema.json")
    assert data is not None, "the package was installed without its data files"
    return data.decode("utf-8")
