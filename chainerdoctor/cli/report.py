"""``chainerdoctor report``."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

import click

from chainerdoctor.cli.options import ReportOptions, report_options

_EPILOG = """\b
Examples:
  chainerdoctor report chainerdoctor-train.py-4711    what a run's captures say
  chainerdoctor report RUN --format json -o run.json
  chainerdoctor report RUN --save run-facts.json      to be judged again elsewhere
  chainerdoctor report RUN --trace run-trace.json     for ui.perfetto.dev
"""


@click.command(epilog=_EPILOG)
@click.argument("folder", type=click.Path(exists=True, file_okay=False), metavar="RUN")
@click.option("--wait", "wait_s", type=click.FloatRange(min=0), default=0.0, help="Seconds to wait for ranks to end.")
@click.option("--save", metavar="FILE", help="Also save what the captures say as a snapshot.")
@click.option(
    "--trace", metavar="FILE", help="Also write a trace for Perfetto: a track per rank, arrows to who waited."
)
@report_options
def command(
    folder: str, wait_s: float, save: Optional[str], trace: Optional[str], report_options: ReportOptions
) -> None:
    """Report on a run that was recorded, whole or broken off.

    RUN is the folder that profile-memory, check-gradients or profile-comm named at its end.
    """
    from chainerdoctor.cli.options import deliver, usage_errors, write_file
    from chainerdoctor.instrumented import report_on_run, trace_of_run

    with usage_errors():
        seen, report = report_on_run(Path(folder), report_options.select, report_options.ignore, wait_s)
        text = trace_of_run(Path(folder)) if trace is not None else ""
    if save is not None:
        write_file(save, seen.dumps())
    if trace is not None:
        write_file(trace, text)
    deliver(report, report_options)
