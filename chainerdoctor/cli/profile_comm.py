"""``chainerdoctor profile-comm``."""

from __future__ import annotations

from typing import Any, Mapping

import click

from chainerdoctor.cli.options import ReportOptions
from chainerdoctor.cli.programs import SETTINGS, go, program_options

_EPILOG = """\b
Examples:
  chainerdoctor profile-comm -n 4 train.py --epoch 1
  chainerdoctor profile-comm -n 4 --stall-timeout 30s --on-stall abort train.py
  mpiexec -n 4 chainerdoctor profile-comm --out shared/run train.py
"""


@click.command(epilog=_EPILOG, context_settings=SETTINGS)
@click.option("--clocks/--no-clocks", default=True, show_default=True, help="Compare ranks' clocks at start and end.")
@program_options
def command(clocks: bool, program: Mapping[str, Any], report_options: ReportOptions) -> None:
    """Run a training script and say where the time of communication goes, and who makes whom wait.

    When the ranks stop moving, say why.
    """
    go("profile-comm", program, {"comm": {"clocks": clocks}}, report_options)
