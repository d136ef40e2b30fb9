"""``--show-fixes``: the example of each rule that found something, as notes below the report."""

from __future__ import annotations

import dataclasses
from typing import Iterable

from chainerdoctor.findings import Report
from chainerdoctor.rules import Rule


def with_fixes(report: Report, rules: Iterable[Rule]) -> Report:
    """The report with one note a rule: what its documentation says under ``Example:``, or how to mend it."""
    docs = {rule.code: rule.doc for rule in rules}
    notes = []
    for verdict in report.found():
        paragraphs = docs[verdict.code].split("\n\n")
        chosen = [p for p in paragraphs if p.startswith("Example:")] or [
            p for p in paragraphs if p.startswith("How to mend it:")
        ]
        for paragraph in chosen[:1]:
            lines = paragraph.split(":", 1)[1].strip("\n").splitlines()
            notes.append(f"{verdict.code} {verdict.slug.replace('_', '-')}, write:")
            notes += [f"    {line.strip()}" for line in lines if line.strip()]
    return dataclasses.replace(report, notes=(*report.notes, *notes))
