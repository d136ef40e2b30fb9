"""``chainerdoctor rules``."""

from __future__ import annotations

import click


@click.command(
    epilog="\b\nExamples:\n  chainerdoctor rules\n  chainerdoctor rules --format json\n  chainerdoctor rules CD5"
)
@click.argument("prefix", default="CD")
@click.option("--format", type=click.Choice(["terminal", "json", "markdown"]), default="terminal", show_default=True)
def command(prefix: str, format: str) -> None:
    """List all rules, or those whose code starts with PREFIX."""
    from chainerdoctor.cli.options import write_text
    from chainerdoctor.report.as_page import as_list
    from chainerdoctor.rules import all_rules

    chosen = [rule for rule in all_rules() if rule.code.startswith(prefix.upper())]
    if not chosen:
        raise click.UsageError(f"no rule's code starts with {prefix}")
    write_text(as_list(chosen, format))
