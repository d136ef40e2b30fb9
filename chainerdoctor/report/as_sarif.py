"""The report as SARIF 2.1.0, for code scanning. Findings about a machine have a logical location, the node."""

from __future__ import annotations

import json
from typing import Any, Dict, List
from urllib.parse import quote

from chainerdoctor.findings import CRASHED, SKIPPED, Finding, Report, Severity, Verdict
from chainerdoctor.report.plain import plain

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def as_sarif(report: Report) -> str:
    """One run; a result per finding; what could not be judged is a notification of the tool."""
    name, _, version = report.tool.partition(" ")
    found = report.found()
    run: Dict[str, Any] = {
        "tool": {
            "driver": {
                "name": name,
                "version": version,
                "rules": [_rule(verdict) for verdict in report.verdicts],
            }
        },
        "invocations": [
            {"executionSuccessful": not report.could_not_judge(), "toolExecutionNotifications": _notifications(report)}
        ],
        "properties": {"command": report.command, "snapshotId": report.snapshot_id},
        "results": [],
    }
    index = {verdict.code: number for number, verdict in enumerate(report.verdicts)}
    for verdict in found:
        run["results"] += [_result(verdict, finding, index[verdict.code]) for finding in verdict.findings]
    return json.dumps({"version": "2.1.0", "$schema": _SCHEMA, "runs": [run]}, indent=2) + "\n"


#: The address by which SARIF 2.1.0 names its own schema.
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def _rule(verdict: Verdict) -> Dict[str, Any]:
    return {
        "id": verdict.code,
        "name": "".join(part.capitalize() for part in verdict.slug.split("_")),
        "shortDescription": {"text": verdict.summary or verdict.slug},
        "defaultConfiguration": {"level": _LEVELS[verdict.severity]},
    }


def _result(verdict: Verdict, finding: Finding, rule_index: int) -> Dict[str, Any]:
    evidence = "; ".join(
        f"{e.what}: {e.seen}" + (f" (wanted: {e.wanted})" if e.wanted else "") for e in finding.evidence
    )
    text = f"{finding.where}: {finding.message}. {finding.remedy}" + (f" [{evidence}]" if evidence else "")
    return {
        "ruleId": verdict.code,
        "ruleIndex": rule_index,
        "level": _LEVELS[verdict.severity],
        "message": {"text": plain(text)},
        "locations": [_location(finding)],
        "partialFingerprints": {"where/v1": plain(f"{verdict.code}:{finding.where}")},
    }


def _location(finding: Finding) -> Dict[str, Any]:
    place = finding.location
    if place is None:
        return {"logicalLocations": [{"name": plain(finding.where), "kind": "resource"}]}
    # A relative path stays relative, so that code scanning finds the file in the checkout.
    physical: Dict[str, Any] = {"artifactLocation": {"uri": _uri(place.path)}}
    if place.line:
        physical["region"] = {"startLine": place.line, **({"startColumn": place.column} if place.column else {})}
    return {"physicalLocation": physical}


def _uri(path: str) -> str:
    """The path percent-encoded; bytes that are not UTF-8 (Python holds them as surrogates) as they are on disk."""
    try:
        return quote(path.encode("utf-8", "surrogateescape"))
    except UnicodeEncodeError:
        return quote(plain(path))


def _notifications(report: Report) -> List[Dict[str, Any]]:
    blind = report.could_not_judge()
    return [
        {
            "level": "error" if verdict in blind else "note",
            "message": {"text": plain(f"{verdict.code} {verdict.slug}: {verdict.reason}")},
            "associatedRule": {"id": verdict.code},
        }
        for verdict in report.verdicts
        if verdict.status in (CRASHED, SKIPPED)
    ]
