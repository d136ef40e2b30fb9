"""``chainerdoctor diff``."""

from __future__ import annotations

import click

from chainerdoctor.cli.options import ReportOptions, report_options


@click.command(epilog="\b\nExample:\n  chainerdoctor diff healthy.json sick.json")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@report_options
def command(first: str, second: str, report_options: ReportOptions) -> None:
    """Name each fact of snapshot B that is not as in snapshot A. Exits with 1 if there is one."""
    from chainerdoctor import snapshot as snapshots
    from chainerdoctor.baseline import compare
    from chainerdoctor.cli.options import deliver, usage_errors
    from chainerdoctor.judging import report_on
    from chainerdoctor.rules import all_rules, selected

    with usage_errors():
        compared = compare(snapshots.load(second), snapshots.load(first), first)
        rules = selected(all_rules(), report_options.select or ("CD010",), report_options.ignore)
    deliver(report_on(compared, rules, f"diff {first} {second}"), report_options)
