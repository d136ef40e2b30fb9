"""A program under instruments from the wish to the report, whatever way it ends."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chainerdoctor.captures import RunError, read_run
from chainerdoctor.facts.run import ProgramEnd
from chainerdoctor.instrumented import Wish, record, report_on_run

MPIEXEC = Path(sys.executable).parent / "mpiexec"


def wish(tmp_path: Path, script: str, *arguments: str, **more: object) -> Wish:
    path = tmp_path / "train.py"
    path.write_text(script)
    wishes = {"command": "test", "is_module": False, "instruments": {}, "out": str(tmp_path / "run"), **more}
    return Wish(target=str(path), arguments=arguments, **wishes)  # type: ignore[arg-type]


def ends(folder: Path) -> dict:
    seen, _ = report_on_run(folder)
    return {each.rank: each.fact for each in seen.all(ProgramEnd)}


@pytest.mark.parametrize(
    ("script", "how", "code"),
    [
        ("pass", "returned", 0),
        ("import sys; sys.exit(7)", "exit", 7),
        ("raise ValueError('boom')", "raised", 1),
        ("import os; os._exit(5)", "cut", 5),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "cut", 137),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "cut", 139),
    ],
)
def test_the_program_s_end_is_known(tmp_path: Path, script: str, how: str, code: int) -> None:
    recorded = record(wish(tmp_path, script))
    assert recorded.exit_code == code
    end = ends(recorded.folder)[0]
    assert end.how == how
    assert end.code == (code if code < 128 else 128 - code)
    _, report = report_on_run(recorded.folder)
    found = [verdict.code for verdict in report.found()]
    assert found == ([] if code == 0 else ["CD420"])


def test_a_run_s_folder_is_not_written_over(tmp_path: Path) -> None:
    record(wish(tmp_path, "pass"))
    with pytest.raises(RunError, match="not empty"):
        record(wish(tmp_path, "pass"))


def test_what_cannot_be_run_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="can't open file"):
        record(Wish("test", str(tmp_path / "none.py"), (), False, {}, out=str(tmp_path / "run")))
    with pytest.raises(RunError, match="no run"):
        read_run(tmp_path)
    (tmp_path / "run.json").write_text("[" * 100_000)
    with pytest.raises(RunError):
        read_run(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot record"):
        record(wish(tmp_path, "pass", out="/proc/nowhere"))


def test_a_missing_rank_makes_the_report_incomplete(tmp_path: Path) -> None:
    recorded = record(wish(tmp_path, "import mpi4py.MPI", ranks=2, launcher="mpiexec"))
    _, report = report_on_run(recorded.folder)
    assert report.found() == ()
    (recorded.folder / "rank-00001.capture").unlink()
    _, report = report_on_run(recorded.folder)
    assert "1 of 2 ranks" in report.checked[0][1]
    assert [verdict.code for verdict in report.found()] == ["CD008"]


def test_garbage_in_a_capture_gives_a_report(tmp_path: Path) -> None:
    recorded = record(wish(tmp_path, "pass"))
    path = recorded.folder / "rank-00000.capture"
    path.write_bytes(path.read_bytes() + os.urandom(1000))
    _, report = report_on_run(recorded.folder)
    assert [verdict.code for verdict in report.found()] == ["CD006"]


ONE_RAISES = """
from mpi4py import MPI
comm = MPI.COMM_WORLD
if comm.rank == 1:
    raise ValueError("only here")
import time; time.sleep(0.3)
"""


def test_ranks_record_themselves_and_the_culprit_is_named(tmp_path: Path) -> None:
    recorded = record(wish(tmp_path, ONE_RAISES, ranks=2, launcher="mpiexec"))
    assert recorded.exit_code != 0
    assert ends(recorded.folder)[1].error == "ValueError: only here"
    _, report = report_on_run(recorded.folder)
    (verdict,) = (v for v in report.found() if v.code == "CD420")
    assert [finding.where.rpartition("/")[2] for finding in verdict.findings] == ["rank 1"]


def joined(tmp_path: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Ranks that the user's own mpiexec starts, through the rank's entry with ``--report``."""
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"kind": "chainerdoctor run", "command": "test", "instruments": {}}))
    command = [sys.executable, "-m", "chainerdoctor.instrument", "--report", "[]", "--run", str(run), *words]
    return subprocess.run([str(MPIEXEC), "-n", "2", *command], capture_output=True, text=True, timeout=60)


def test_rank_0_reports_for_a_launcher_s_ranks(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("from mpi4py import MPI\nprint(f'hello {MPI.COMM_WORLD.rank}', flush=True)\n")
    done = joined(tmp_path, str(script))
    assert done.returncode == 0, done.stderr
    assert sorted(line for line in done.stdout.splitlines() if line.startswith("hello")) == ["hello 0", "hello 1"]
    assert done.stdout.count("chainerdoctor test:") == 1
    assert "2 ranks" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_program_and_the_report_comes_all_the_same(tmp_path: Path, number: int) -> None:
    script = "import time\nprint('ready', flush=True)\ntime.sleep(60)\n"
    code = (
        "import sys\nsys.path.insert(0, sys.argv[1])\nfrom test_instrumented import wish, record, ends, Path\n"
        "r = record(wish(Path(sys.argv[2]), sys.argv[3]))\nprint('code', r.exit_code, ends(r.folder)[0].how)\n"
    )
    command = [sys.executable, "-c", code, str(Path(__file__).parent), str(tmp_path), script]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.2)
    # A terminal's Ctrl-C goes to the whole group; a scheduler's SIGTERM to one process.
    os.killpg(child.pid, number) if number == signal.SIGINT else os.kill(child.pid, number)
    out, err = child.communicate(timeout=30)
    told = {signal.SIGINT: "code 130 raised", signal.SIGTERM: "code 143 cut"}
    assert out.strip() == told[number], err
