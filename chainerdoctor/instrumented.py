"""A person's program under instruments, from the wish to the report: what ``profile-…`` and ``check-gradients`` call."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Callable, Dict, Iterator, List, Mapping, NoReturn, Optional, Tuple

from chainerdoctor.captures import RunError, read_run, snapshot_of
from chainerdoctor.captures.gradient_map import norm_map
from chainerdoctor.facts.run import ProgramEnd, ProgramRun
from chainerdoctor.findings import Report
from chainerdoctor.instrument.recording import capture_path, manifest_of, write_manifest
from chainerdoctor.instrument.stall import VERDICT
from chainerdoctor.judging import report_on
from chainerdoctor.launch.deaths import Deaths
from chainerdoctor.launch.hosts import Slots
from chainerdoctor.launch.identity import identity
from chainerdoctor.launch.join import job_key
from chainerdoctor.launch.launchers import plan
from chainerdoctor.report import gradients
from chainerdoctor.report.communication import communication_charts, communication_tables
from chainerdoctor.rules import Rule, all_rules, selected
from chainerdoctor.snapshot import Snapshot


@dataclass(frozen=True)
class Wish:
    """What to run and what to record of it. ``instruments`` maps names to their options."""

    command: str
    target: str
    arguments: Tuple[str, ...]
    is_module: bool
    instruments: Mapping[str, Mapping[str, Any]]
    ranks: Optional[int] = None
    hosts: Tuple[Slots, ...] = ()
    launcher: str = "auto"
    out: Optional[str] = None


@dataclass(frozen=True)
class Recorded:
    """Where the run is, and the program's own exit code (128 + n for signal n, as shells say it)."""

    folder: Path
    exit_code: int


def started_by_a_launcher() -> bool:
    """Whether this process is itself one of several ranks (``mpiexec -n 4 chainerdoctor check-gradients …``)."""
    told = identity(os.environ)
    return told is not None and told.size > 1


def become_rank(wish: Wish, report_arguments: Tuple[str, ...]) -> NoReturn:
    """Replace this process by its rank of the run; rank 0 reports at the end.

    Raises:
        RunError: the run's folder cannot be made.
    """
    folder = _make_folder(wish, f"-{job_key(os.environ)}", shared=True)
    report = ["--report", json.dumps(list(report_arguments))]
    words = [*_rank_command(wish, folder)]
    at = words.index("--run")
    # The launcher's own process has to be the rank: its signals, descriptors and process id are MPI's business.
    os.execv(sys.executable, [*words[:at], *report, *words[at:]])  # noqa: S606


def record(wish: Wish) -> Recorded:
    """Run the program, with its own input and output, until it ends.

    Raises:
        RunError: there is no such script, or the folder cannot be made.
        LaunchError: the ranks cannot be started.
    """
    if not wish.is_module and not os.path.exists(wish.target):
        raise RunError(f"can't open file '{wish.target}': No such file or directory")
    folder = _make_folder(wish, f"-{os.getpid()}", shared=False)
    command = _rank_command(wish, folder)
    environment: Mapping[str, str] = os.environ
    if wish.ranks is not None or wish.hosts:
        launch = plan(wish.launcher, wish.ranks, wish.hosts, command, recover=False)
        command, environment = launch.commands[0], launch.environments[0]
        _amend(folder, ranks=launch.ranks, launcher=launch.launcher)
        if len(launch.commands) > 1:
            raise RunError(f"--launcher {wish.launcher} has no MPI: take mpiexec or slurm to run several ranks")
    with Deaths(folder):
        code, interrupted = _run_to_end(command, environment)
    if wish.ranks is None and not wish.hosts:
        _amend(folder, codes={"0": code})
    if interrupted:
        _amend(folder, interrupted=True)
    if _ended_for_a_stall(folder):
        code = 1  # a launcher may say another number for processes that it had to end
    return Recorded(folder, code if code >= 0 else 128 - code)


def _rank_command(wish: Wish, folder: Path) -> Tuple[str, ...]:
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    module = ["--module"] if wish.is_module else []
    head = [sys.executable, *flags, "-m", "chainerdoctor.instrument", "--run", str(folder)]
    return (*head, *module, wish.target, *wish.arguments)


def _make_folder(wish: Wish, suffix: str, shared: bool) -> Path:
    stem = re.sub(r"[^A-Za-z0-9_.-]", "-", Path(wish.target).name)[:40] or "program"
    folder = Path(wish.out) if wish.out is not None else Path(f"chainerdoctor-{stem}{suffix}")
    try:
        folder.mkdir(parents=True, exist_ok=shared or wish.out is not None)
        if not shared and any(folder.iterdir()):
            raise RunError(f"{folder} is not empty; name another folder with --out")
        if not shared or not (folder / "run.json").exists():
            _write_manifest(folder, wish)
    except OSError as error:
        raise RunError(f"cannot record in {folder}: {error.strerror or error}") from None
    return folder.resolve()


def _write_manifest(folder: Path, wish: Wish) -> None:
    content = {
        "command": wish.command,
        "target": wish.target,
        "is_module": wish.is_module,
        "instruments": {name: dict(options) for name, options in wish.instruments.items()},
        "ranks": wish.ranks if wish.hosts or wish.ranks is not None else None,
        "started_s": time.time(),
    }
    write_manifest(folder, content)


def _amend(folder: Path, **more: Any) -> None:
    with contextlib.suppress(OSError, ValueError):  # the captures themselves are more than nothing
        write_manifest(folder, {**manifest_of(folder), **more})


def _ended_for_a_stall(folder: Path) -> bool:
    try:
        return json.loads((folder / VERDICT).read_text(encoding="utf-8")).get("aborted") is True
    except (OSError, ValueError, AttributeError):
        return False


def _run_to_end(command: Tuple[str, ...], environment: Mapping[str, str]) -> Tuple[int, bool]:
    """The exit code as Popen gives it, and whether a signal came for the program."""
    with _signals_for_the_program() as (forward_to, came):
        child = subprocess.Popen(command, env=dict(environment), close_fds=False)
        forward_to.append(child.pid)
        return child.wait(), bool(came)


@contextlib.contextmanager
def _signals_for_the_program() -> Iterator[Tuple[List[int], List[int]]]:
    """Ctrl-C reaches the program by the terminal itself; SIGTERM is passed on. This process stays, to report.

    Gives the list of processes to pass signals on to, and the list of signals that came.
    """
    children: List[int] = []
    came: List[int] = []

    def pass_on(number: int, frame: Optional[FrameType]) -> None:
        came.append(number)
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    handlers: Dict[int, Callable[[int, Optional[FrameType]], None]] = {
        signal.SIGINT: lambda number, frame: came.append(number),
        signal.SIGTERM: pass_on,
    }
    before = {}
    for number, handler in handlers.items():
        if signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    try:
        yield children, came
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def wait_for_ranks(folder: Path, size: int, patience_s: float) -> None:
    """Wait until every rank has said that it ended, or the patience is over: rank 0 reports while others still leave."""
    until = time.monotonic() + patience_s
    waiting = {capture_path(folder, rank) for rank in range(size)}
    while waiting and time.monotonic() < until:
        for path in tuple(waiting):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - 65536))
                if b'"what":"end"' in file.read():
                    waiting.discard(path)
        if waiting:
            time.sleep(0.05)


def report_on_run(
    folder: Path, select: Tuple[str, ...] = (), ignore: Tuple[str, ...] = (), wait_s: float = 0.0
) -> Tuple[Snapshot, Report]:
    """Read a run, whole or not, and judge it.

    Raises:
        RunError, SelectionError: there is no run, or no such rule.
    """
    run = read_run(folder)
    if wait_s:
        wait_for_ranks(folder, run.size, wait_s)
        run = read_run(folder)
    seen = snapshot_of(run)
    report = report_on(seen, selected(run_rules(), select, ignore), seen.command, _checked(seen, run.size))
    shown = dataclasses.replace(
        report,
        tables=(*gradients.tables_of(seen), *communication_tables(seen)),
        charts=(*gradients.charts_of(seen), *filter(None, [norm_map(run)]), *communication_charts(seen)),
        notes=(*report.notes, f"The run is in {folder} (chainerdoctor report)."),
    )
    return seen, shown


def trace_of_run(folder: Path) -> str:
    """A run's calls as a trace (JSON text).

    Raises:
        RunError: there is no run, or no communication was timed in it.
    """
    from chainerdoctor.captures.trace import trace_of
    from chainerdoctor.instrument.comm import CALLS_NAME

    run = read_run(folder)
    if not any(CALLS_NAME in rank.capture.packed for rank in run.ranks):
        raise RunError(f"{folder}: no communication was timed; record it with chainerdoctor profile-comm")
    return trace_of(run)


def run_rules() -> Tuple[Rule, ...]:
    """Every rule: those whose facts no instrument recorded have nothing to look at."""
    return all_rules()


def _checked(seen: Snapshot, size: int) -> Tuple[Tuple[str, str], ...]:
    setup = seen.all(ProgramRun)[0].fact
    ends = [each.fact for each in seen.all(ProgramEnd)]
    done = sorted({end.iterations for end in ends})
    iterations = "-".join(str(each) for each in (done[:1] + done[-1:] if len(done) > 1 else done)) or "0"
    ranks = f"{len(ends)} of {size} ranks" if len(ends) < size else f"{size} rank{'s' if size != 1 else ''}"
    return (("looked at", f"{setup.target}, {ranks}, {iterations} iterations"),)
