"""What ``explain`` and ``rules`` print."""

from __future__ import annotations

import json
from typing import Sequence

from chainerdoctor.rules import Rule


def as_page(rule: Rule) -> str:
    """The rule's code, name, severity and documentation as plain text."""
    title = f"{rule.code} {rule.slug.replace('_', '-')}"
    facts = ", ".join(kind.kind for kind in rule.needs) or "the whole snapshot"
    line = f"{rule.family} · {rule.severity.value} · since {rule.since} · looks at {facts}"
    return f"{title}\n{'=' * len(title)}\n{line}\n\n{rule.doc}\n"


def as_list(rules: Sequence[Rule], form: str) -> str:
    """The rules as a table: ``terminal``, ``markdown`` or ``json``."""
    if form == "json":
        entries = [
            {
                "code": r.code,
                "slug": r.slug,
                "severity": r.severity.value,
                "family": r.family,
                "since": r.since,
                "doc": r.doc,
            }
            for r in rules
        ]
        return json.dumps(entries, indent=2) + "\n"
    if form == "markdown":
        lines = ["| code | name | severity | what |", "|---|---|---|---|"]
        lines += [f"| {r.code} | {r.slug.replace('_', '-')} | {r.severity.value} | {_cell(r.summary)} |" for r in rules]
        return "\n".join(lines) + "\n"
    width = max(len(rule.slug) for rule in rules)
    return "".join(f"{r.code}  {r.severity.value:<7}  {r.slug.replace('_', '-'):<{width}}\n" for r in rules)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
