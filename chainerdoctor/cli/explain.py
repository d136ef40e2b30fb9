"""``chainerdoctor explain CODE``."""

from __future__ import annotations

import click


@click.command(epilog="\b\nExample:\n  chainerdoctor explain CD501")
@click.argument("code")
def command(code: str) -> None:
    """Say what a rule looks for, why that hurts and how to mend it."""
    from chainerdoctor.cli.options import write_text
    from chainerdoctor.report.as_page import as_page
    from chainerdoctor.rules import all_rules

    rules = {rule.code: rule for rule in all_rules()}
    found = rules.get(code.upper()) or next((r for r in rules.values() if r.slug == code.replace("-", "_")), None)
    if found is None:
        import difflib

        near = ", ".join(difflib.get_close_matches(code.upper(), rules, n=3)) or "see 'chainerdoctor rules'"
        raise click.UsageError(f"there is no rule {code} (near: {near})")
    write_text(as_page(found))
