"""``chainerdoctor lint PATH…``."""

from __future__ import annotations

from typing import Tuple

import click

from chainerdoctor.cli.options import ReportOptions, report_options

_EPILOG = """\b
Examples:
  chainerdoctor lint train.py                   one script
  chainerdoctor lint src/ experiments.ipynb     folders and notebooks, imports among them followed
  chainerdoctor lint train.py --show-fixes      with what to write instead
  chainerdoctor lint src/ --ignore CD93 --fail-on warning
\b
On a line of the script:
  iterator = SerialIterator(test, 8)  # chainerdoctor: ignore[CD930]
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--show-fixes", is_flag=True, help="Print the code to write for each rule that found something.")
@report_options
def command(paths: Tuple[str, ...], show_fixes: bool, report_options: ReportOptions) -> None:
    """Find mistakes in training scripts before they run.

    PATH is a Python file, a notebook or a folder. Scripts are read, never imported or run.
    """
    from chainerdoctor.cli.options import deliver, usage_errors
    from chainerdoctor.cli.progress import counting_progress
    from chainerdoctor.judging import report_on
    from chainerdoctor.rules import selected
    from chainerdoctor.scripts.fixes import with_fixes
    from chainerdoctor.scripts.gather import (
        NothingToCheckError,
        checked,
        identity,
        read_scripts,
        script_rules,
        without_suppressed,
    )
    from chainerdoctor.snapshot import without_garbage_collection

    with usage_errors():
        rules = selected(script_rules(), report_options.select, report_options.ignore)
    with without_garbage_collection():
        try:
            with counting_progress("files read") as progress:
                snapshot = read_scripts(paths, progress=progress)
        except NothingToCheckError as error:
            raise click.UsageError(str(error)) from None
        report = without_suppressed(report_on(snapshot, rules, "lint", checked(snapshot), identity(snapshot)), snapshot)
    deliver(with_fixes(report, rules) if show_fixes else report, report_options)
