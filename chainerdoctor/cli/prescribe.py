"""``chainerdoctor prescribe``."""

from __future__ import annotations

from typing import Optional

import click

_EPILOG = """\b
Examples:
  chainerdoctor prescribe                              for this machine
  chainerdoctor prescribe --gpu H100                   for another one
  chainerdoctor prescribe --driver 550.54.14 --python 3.9
  chainerdoctor prescribe --cuda 12.4 --format requirements -o requirements.txt
"""


@click.command(epilog=_EPILOG)
@click.option("--cuda", metavar="VERSION", help="CUDA toolkit, such as 12.4 (or 12).")
@click.option("--driver", metavar="VERSION", help="NVIDIA driver, such as 550.54.14.")
@click.option("--gpu", metavar="NAME", help="Oldest GPU, such as H100 or 8.6.")
@click.option("--python", metavar="VERSION", help="Python, such as 3.9.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["terminal", "requirements", "conda", "dockerfile", "uv"]),
    default="terminal",
    show_default=True,
    help="Form of the answer.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, allow_dash=True), help="File to write.")
def command(
    cuda: Optional[str],
    driver: Optional[str],
    gpu: Optional[str],
    python: Optional[str],
    form: str,
    output: Optional[str],
) -> None:
    """Name the versions that work together on a machine, with the reason for each.

    Without options it is this machine. Exit code 2: no set is known for what was asked, and the nearest is named.
    """
    import sys

    from chainerdoctor.cli.options import terminal_width, write_file, write_text
    from chainerdoctor.prescribe import described, prescribe
    from chainerdoctor.report.as_prescription import FILES, as_terminal
    from chainerdoctor.tables.working_stacks import NoStackError
    from chainerdoctor.this_machine import BlindError, gpu_facts

    own = sys.version_info[:2]
    try:
        seen = () if cuda or driver or gpu else gpu_facts()
        stack = prescribe(described(own, seen, python=python, driver=driver, cuda=cuda, gpu=gpu))
        text = FILES[form](stack) if form in FILES else as_terminal(stack, terminal_width())
    except NoStackError as error:
        raise click.UsageError(str(error)) from None
    except BlindError as error:
        click.echo(f"Error: {error}; say --driver or --gpu to go on without looking.", err=True)
        raise SystemExit(3) from None
    if output in (None, "-"):
        write_text(text)
    else:
        write_file(str(output), text)
