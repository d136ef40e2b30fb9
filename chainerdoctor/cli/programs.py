"""What commands have in common that run a person's program under instruments."""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, ClassVar, Dict, Mapping, Optional, Tuple

import click

from chainerdoctor.cli.options import ReportOptions, report_options

#: Options of chainerdoctor end where the program's name stands; everything after it is the program's.
SETTINGS = {"ignore_unknown_options": True, "allow_interspersed_args": False}


class Seconds(click.ParamType):  # type: ignore[type-arg]
    """A duration such as ``90``, ``60s``, ``2m`` or ``1h``; the command gets seconds."""

    name = "duration"
    _UNITS: ClassVar[Dict[str, float]] = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}

    def convert(self, value: Any, param: Optional[click.Parameter], ctx: Optional[click.Context]) -> float:
        """Seconds; fails on what is no duration."""
        if isinstance(value, (int, float)):
            return float(value)
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", str(value))
        if found is None or found[2] not in self._UNITS:
            self.fail(f"'{value}' is no duration, such as 60s or 2m", param, ctx)
        return float(found[1]) * self._UNITS[found[2]]


def program_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add ``-n --hosts --hostfile --launcher --out --stall-timeout --on-stall -m`` and the
    program; the command gets ``program`` (see :func:`go`)."""

    @click.option("-n", "ranks", type=click.IntRange(min=1), help="Start so many ranks by MPI [default: one process].")
    @click.option("--hosts", metavar="A,B:4", help="Hosts with their slots; they have to share the run's folder.")
    @click.option(
        "--hostfile", type=click.Path(exists=True, dir_okay=False), help="Hosts, in MPICH's or Open MPI's form."
    )
    @click.option("--launcher", type=click.Choice(["auto", "mpiexec", "slurm"]), default="auto", show_default=True)
    @click.option("--out", type=click.Path(file_okay=False), help="Record in this folder, new or empty.")
    @click.option(
        "--stall-timeout",
        "stall_timeout_s",
        type=Seconds(),
        default="60s",
        show_default=True,
        help="Say why, when several ranks have made no progress for so long; 0 to leave it.",
    )
    @click.option(
        "--on-stall",
        type=click.Choice(["report", "abort"]),
        default="report",
        show_default=True,
        help="What else to do then: abort ends the program with exit code 1.",
    )
    @click.option("-m", "module", metavar="MODULE", help="Run a module instead of a script, as python -m does.")
    @click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="TRAIN.PY ARGS…")
    @report_options
    @functools.wraps(function)
    def wrapped(
        *args: Any,
        ranks: Optional[int],
        hosts: Optional[str],
        hostfile: Optional[str],
        launcher: str,
        out: Optional[str],
        stall_timeout_s: float,
        on_stall: str,
        module: Optional[str],
        words: Tuple[str, ...],
        **kwargs: Any,
    ) -> None:
        if module is None and (not words or words[0].startswith("-")):
            wrong = f"no such option: {words[0]} (the script's options come after the script)" if words else ""
            raise click.UsageError(wrong or "say which script to run, with its arguments after it")
        target, arguments = (module, words) if module is not None else (words[0], words[1:])
        program = {
            "target": target,
            "arguments": arguments,
            "is_module": module is not None,
            "ranks": ranks,
            "launcher": launcher,
            "out": out,
            "stall": {"timeout_s": stall_timeout_s, "on_stall": on_stall},
        }
        function(*args, program={**program, "hosts": hosts, "hostfile": hostfile}, **kwargs)

    return wrapped


def go(
    command: str,
    program: Mapping[str, Any],
    instruments: Mapping[str, Mapping[str, Any]],
    report_options: ReportOptions,
) -> None:
    """Run the program under the instruments, print the report, and leave with the exit code that is due.

    The program's own exit code goes first, if it is not 0; then the report's.
    """
    from chainerdoctor.checkup import hosts_of
    from chainerdoctor.cli.options import usage_errors
    from chainerdoctor.instrumented import Wish, become_rank, record, report_on_run, started_by_a_launcher

    with usage_errors():
        placed = hosts_of(program["hosts"], program["hostfile"])
        rest = {key: value for key, value in program.items() if key not in ("hosts", "hostfile", "stall")}
        watched = {"stall": program["stall"]} if program["stall"]["timeout_s"] > 0 else {}
        wish = Wish(command, instruments={**instruments, **watched}, hosts=placed, **rest)
        if started_by_a_launcher():
            if wish.ranks is not None or placed:
                raise click.UsageError(
                    "-n and --hosts are for a command that starts the ranks; these are started already"
                )
            become_rank(wish, _as_arguments(report_options))
        recorded = record(wish)
        _, report = report_on_run(recorded.folder, report_options.select, report_options.ignore)
    finish(report, report_options, recorded.exit_code)


def finish(report: Any, report_options: ReportOptions, program_code: int) -> None:
    """Deliver the report, but leave with the program's own code where that is not 0."""
    from chainerdoctor.cli.options import deliver

    try:
        deliver(report, report_options)
    except SystemExit as leaving:
        raise SystemExit(program_code or leaving.code) from None


def _as_arguments(options: ReportOptions) -> Tuple[str, ...]:
    words = ["--format", options.format, "--fail-on", options.fail_on.value]
    words += [] if options.output is None else ["--output", options.output]
    words += [word for code in options.select for word in ("--select", code)]
    words += [word for code in options.ignore for word in ("--ignore", code)]
    return tuple(words)
