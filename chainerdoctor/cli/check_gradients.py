"""``chainerdoctor check-gradients``."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional

import click

from chainerdoctor.cli.options import ReportOptions
from chainerdoctor.cli.programs import SETTINGS, go, program_options

_EPILOG = """\b
Examples:
  chainerdoctor check-gradients train.py --epoch 3
  chainerdoctor check-gradients -n 4 --across-ranks train.py    four ranks by MPI
  chainerdoctor check-gradients --repro nan -- train.py         keep the culprit
  mpiexec -n 4 chainerdoctor check-gradients train.py           join a launcher
"""


@click.command(epilog=_EPILOG, context_settings=SETTINGS)
@click.option("--every", type=click.IntRange(min=1), default=1, show_default=True, help="Look each so many iterations.")
@click.option(
    "--stop-on",
    type=click.Choice(["error", "never"]),
    default="error",
    show_default=True,
    help="error: end before a NaN or infinite gradient is applied, with exit code 1.",
)
@click.option("--across-ranks", is_flag=True, help="Also compare the ranks' own gradients and check the all-reduce.")
@click.option("--repro", type=click.Path(file_okay=False), help="Write a script that fails in the same operation.")
@program_options
def command(
    every: int,
    stop_on: str,
    across_ranks: bool,
    repro: Optional[str],
    program: Mapping[str, Any],
    report_options: ReportOptions,
) -> None:
    """Run a training script and say what is wrong with its gradients.

    The script runs unchanged and its results stay the same, bit for bit. Each iteration tells the norm of every
    parameter's gradient, the loss and the loss scale. The first NaN or infinity ends the training before it is applied,
    and that iteration is run again, function by function, to name the operation that made it.
    """
    import os

    options: Dict[str, Any] = {"stop_on": stop_on, "every": every, "across_ranks": across_ranks}
    if repro is not None:
        options["repro"] = os.path.abspath(repro)
    go("check-gradients", program, {"gradients": options}, report_options)
