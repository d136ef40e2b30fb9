"""What every reporting command has in common: its options, and how a report is delivered."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from dataclasses import dataclass
from typing import Any, Callable, Iterator, Optional, Tuple

import click

from chainerdoctor.findings import Report, Severity

FORMATS = ("terminal", "json", "junit", "sarif", "markdown", "html")


@dataclass(frozen=True)
class ReportOptions:
    """How the user wants the report."""

    format: str
    output: Optional[str]
    select: Tuple[str, ...]
    ignore: Tuple[str, ...]
    fail_on: Severity


def report_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``--format --output --select --ignore --fail-on``; the command gets them as ``report_options``."""

    @click.option(
        "--format", type=click.Choice(FORMATS), default="terminal", show_default=True, help="Form of the report."
    )
    @click.option(
        "--output", "-o", type=click.Path(dir_okay=False, allow_dash=True), help="Write the report to this file."
    )
    @click.option(
        "--select", multiple=True, metavar="CODE", help="Only rules whose code starts so (repeat, or commas)."
    )
    @click.option("--ignore", multiple=True, metavar="CODE", help="Leave out rules whose code starts so.")
    @click.option(
        "--fail-on",
        type=click.Choice([s.value for s in Severity]),
        default="error",
        show_default=True,
        help="Exit with 1 from this severity on.",
    )
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        format: str,
        output: Optional[str],
        select: Tuple[str, ...],
        ignore: Tuple[str, ...],
        fail_on: str,
        **kwargs: Any,
    ) -> None:
        options = ReportOptions(format, output, _codes(select), _codes(ignore), Severity(fail_on))
        function(*args, report_options=options, **kwargs)

    return wrapped


def _codes(values: Tuple[str, ...]) -> Tuple[str, ...]:
    codes = tuple(code.strip().upper() for value in values for code in value.split(",") if code.strip())
    for code in codes:
        if not re.fullmatch(r"CD[0-9]{0,3}", code):
            raise click.UsageError(f"'{code}' is not the start of a rule's code, such as CD5 or CD501")
    return codes


def render(report: Report, options: ReportOptions) -> str:
    """The report in the form asked for. Only the renderer that is used is imported."""
    if options.format == "terminal":
        from chainerdoctor.report.as_terminal import as_terminal

        to_screen = options.output in (None, "-")
        colour = to_screen and sys.stdout.isatty() and "NO_COLOR" not in os.environ
        return as_terminal(report, width=terminal_width(), colour=colour, unicode=_can_print("─✓✗"))
    from importlib import import_module

    module = import_module(f"chainerdoctor.report.as_{options.format}")
    return str(getattr(module, f"as_{options.format}")(report))


def deliver(report: Report, options: ReportOptions) -> None:
    """Render, write to the file or to standard output, and leave with the report's exit code."""
    text = render(report, options)
    if options.output in (None, "-"):
        write_text(text)
    else:
        write_file(str(options.output), text)
    raise SystemExit(report.exit_code(options.fail_on))


@contextlib.contextmanager
def usage_errors() -> Iterator[None]:
    """Turn the errors by which layers below refuse a wish into one line and exit code 2."""
    from chainerdoctor.captures import RunError
    from chainerdoctor.launch.collect import LaunchError
    from chainerdoctor.launch.hosts import HostsError
    from chainerdoctor.rules import SelectionError
    from chainerdoctor.snapshot import SnapshotError

    try:
        yield
    except (SnapshotError, HostsError, LaunchError, RunError, SelectionError) as error:
        raise click.UsageError(str(error)) from None


def write_text(text: str) -> None:
    """Write to standard output whatever its encoding can hold; a reader that went away (``| head``) is no error."""
    try:
        encoding = sys.stdout.encoding or "utf-8"
        sys.stdout.buffer.write(text.encode(encoding, "replace"))
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # Python would complain again when it flushes at exit; give it somewhere harmless to flush to.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def write_file(path: str, text: str) -> None:
    """Write a file whole or not at all.

    Raises:
        SystemExit: it cannot be written (code 3: what was found could not be told).
    """
    temporary = f"{path}.{os.getpid()}.tmp"
    try:
        with open(temporary, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        if os.path.exists(temporary):
            os.unlink(temporary)
        click.echo(f"Error: cannot write {path}: {error.strerror or error}", err=True)
        raise SystemExit(3) from None


def terminal_width() -> int:
    """Columns of the terminal, 80 for a pipe."""
    import shutil

    # A pipe has no width: 80 columns read well everywhere.
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80


def _can_print(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
