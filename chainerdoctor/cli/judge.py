"""``chainerdoctor judge``."""

from __future__ import annotations

from typing import Tuple

import click

from chainerdoctor.cli.options import ReportOptions, report_options


@click.command(
    epilog="\b\nExamples:\n  chainerdoctor judge node1.json node2.json\n  chainerdoctor judge run.json --select CD5"
)
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@report_options
def command(files: Tuple[str, ...], report_options: ReportOptions) -> None:
    """Judge saved snapshots again, with the rules of this version. Nothing is looked at."""
    from chainerdoctor import snapshot as snapshots
    from chainerdoctor.cli.options import deliver, usage_errors
    from chainerdoctor.judging import report_on
    from chainerdoctor.rules import all_rules, selected

    with usage_errors():
        parts = [snapshots.load(path) for path in files]
        rules = selected(all_rules(), report_options.select, report_options.ignore)
    seen = snapshots.merge(parts, command=parts[0].command)
    deliver(report_on(seen, rules, "judge"), report_options)
