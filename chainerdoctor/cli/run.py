"""``chainerdoctor run``."""

from __future__ import annotations

from typing import Optional, Tuple

import click

_EPILOG = """\b
Examples:
  chainerdoctor run --compat train.py --epoch 20
  chainerdoctor run --compat -m mypackage.train --epoch 20
  mpiexec -n 4 chainerdoctor run --compat train.py
"""


@click.command(
    epilog=_EPILOG,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.option("--compat", is_flag=True, help="Make Chainer 7.8.1 work on Python 3.12+, NumPy 2, CuPy 13 and 14.")
@click.option("--module", "-m", metavar="NAME", help="Run a module, as python -m does, instead of a script.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[SCRIPT] [ARGUMENTS]...")
def command(compat: bool, module: Optional[str], arguments: Tuple[str, ...]) -> None:
    """Run a training script as Python would, and pass its exit code on.

    With --compat, the script and every Python that it starts see what Chainer needs of older versions; without it
    nothing is changed. Options of chainerdoctor come before the script, the script's own after it.
    """
    from chainerdoctor.instrument.runner import CannotRun, Program, leave, run

    if module is None and not arguments:
        raise click.UsageError("say which script to run, for example: chainerdoctor run --compat train.py")
    if module is None and arguments[0].startswith("-"):
        raise click.UsageError(f"no such option: {arguments[0]} (the script's options come after the script)")
    if compat:
        import os

        import chainerdoctor.compat as layer

        layer.reach_children(os.environ)
    program = Program(module, arguments, is_module=True) if module else Program(arguments[0], arguments[1:])
    try:
        ended = run(program)
    except CannotRun as error:
        raise click.UsageError(str(error)) from None
    leave(ended)
