"""A rule's page: what ``explain`` prints."""

from __future__ import annotations

from chainerdoctor.rules import Rule


def as_page(rule: Rule) -> str:
    """The rule's code, name, severity and documentation as plain text."""
    title = f"{rule.code} {rule.slug.replace('_', '-')}"
    facts = ", ".join(kind.kind for kind in rule.needs) or "nothing"
    head = (
        f"{title}\n{'=' * len(title)}\n{rule.family} · {rule.severity.value} · since {rule.since} · looks at {facts}\n"
    )
    return f"{head}\n{rule.doc}\n"
