"""``chainerdoctor schema``."""

from __future__ import annotations

import click


@click.command(epilog="\b\nExample:\n  chainerdoctor schema > report.schema.json")
def command() -> None:
    """Print the JSON Schema of the reports that --format json writes."""
    from chainerdoctor.cli.options import write_text
    from chainerdoctor.report.as_json import schema_text

    write_text(schema_text())
