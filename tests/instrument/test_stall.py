"""Every way to hang gets its sentence on real ranks, and what is only slow gets none."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from typing import Callable, Dict, Tuple

import pytest

from chainerdoctor.facts.stall import Whereabouts
from chainerdoctor.instrument.activity import Activity, spent_ticks
from chainerdoctor.instrument.places import place_of
from chainerdoctor.instrument.ring import CALLS, Ring, read_ring, ring_path
from chainerdoctor.instrument.whereabouts import whereabouts
from chainerdoctor.instrumented import report_on_run

pytest.importorskip("chainer", reason="Chainer runs on Python 3.8 to 3.11 here") if sys.version_info < (3, 12) else (
    pytest.skip("Chainer runs on Python 3.8 to 3.11 here", allow_module_level=True)
)

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "scripts"
TIMEOUT_S = 1.2
Sick = Callable[[str], Tuple["subprocess.CompletedProcess[str]", Path]]
MEAN = r"ranks 0, 2 are in multi_node_mean_grad #\d+"
#: Script and arguments, the rule that has to find it, and the sentence. MPICH ends some of these programs by itself.
CASES = {
    "lazy link": (
        "stall_lazy_link.py",
        "CD433",
        r"rank 2 is in bcast_data at stall_lazy_link.py:46 because /extra/W was initialised at iteration 2; "
        r"ranks 0–1 are in multi_node_mean_grad #1$",
    ),
    "no gradient": (
        "stall_no_gradient.py",
        "CD434",
        r"rank 1 is in multi_node_mean_grad #3 at .*:36 with 288 bytes, without a gradient of /branch/W, /branch/b; "
        r"ranks 0, 2 are in multi_node_mean_grad #3 at .* with 11,088 bytes$",
    ),
    "exception": (
        "stall_one_rank_ends.py --how raise",
        "CD431",
        rf"rank 1 raised ValueError: a broken sample at stall_one_rank_ends.py:34 and ended; {MEAN} at",
    ),
    "killed": ("stall_one_rank_ends.py --how kill", "CD430", rf"rank 1 died in .*iteration 4; {MEAN} at"),
    "shards": (
        "stall_one_rank_ends.py --how shards",
        "CD432",
        r"ranks 1–2 have ended after \d iterations; rank 0 is in multi_node_mean_grad #\d at .*:40$",
    ),
    "evaluator on rank 0": (
        "stall_evaluator.py --how guard",
        "CD433",
        r"rank 0 is in allreduce_obj at .*, which ranks 1–2 have not called; ranks 1–2 (are in|called) multi_node_mean_grad",
    ),
    "evaluators of unequal length": (
        "stall_evaluator.py --how lengths",
        "CD433",
        r"rank 0 is in allreduce_obj of the multi-node evaluator at .*; ranks 1–2 are in multi_node_mean_grad #\d+",
    ),
    "scatter under a guard": (
        "stall_collectives.py --how scatter",
        "CD433",
        r"rank 0 called bcast_obj of scatter_dataset at stall_collectives.py:26, which ranks 1–2 have not called",
    ),
    "order": (
        "stall_collectives.py --how order",
        "CD433",
        r"rank 1 is in allreduce at stall_collectives.py:\d+, .*; ranks 0, 2 are in bcast_data at stall_collectives.py",
    ),
    "size": (
        "stall_collectives.py --how size",
        "CD434",
        r"rank 1 (is in|called) allreduce at .* with 800,000 bytes; ranks 0, 2 (are in|called) allreduce.* 400,000 bytes",
    ),
    "messages": (
        "stall_collectives.py --how messages",
        "CD437",
        r"rank 0 is in recv_obj from rank 1 at .*; rank 1 is in recv_obj from rank 0; rank 2 is in allreduce_obj",
    ),
    "barrier of MPI": (
        "stall_collectives.py --how barrier",
        "CD437",
        r"rank 0 is in Barrier of MPI at stall_collectives.py:\d+; ranks 1–2 are in allreduce_obj at",
    ),
    "data loading": (
        "stall_data_loading.py",
        "CD435",
        rf"rank 1 is blocked in data loading at stall_data_loading.py:23, without using CPU for \d+ s; {MEAN} at",
    ),
}


def watched(folder: Path, words: str) -> "subprocess.CompletedProcess[str]":
    script, *arguments = words.split()
    command = [sys.executable, "-m", "chainerdoctor", "profile-comm", "-n", "3", "--out", str(folder)]
    command += ["--stall-timeout", f"{TIMEOUT_S}s", "--on-stall", "abort", "--format", "json"]
    command += [str(SCRIPTS / script), *arguments]
    return subprocess.run(command, cwd=folder.parent, capture_output=True, text=True, timeout=60)


def sentences(folder: Path) -> dict:
    _, report = report_on_run(folder)
    return {verdict.code: verdict.findings[0].message for verdict in report.found() if verdict.code.startswith("CD4")}


@pytest.fixture(scope="module")
def sick(tmp_path_factory: pytest.TempPathFactory) -> Sick:
    """Runs a case once; several tests look at what it left."""
    made: Dict[str, Tuple[subprocess.CompletedProcess[str], Path]] = {}

    def run(case: str) -> Tuple["subprocess.CompletedProcess[str]", Path]:
        if case not in made:
            folder = tmp_path_factory.mktemp("stall") / "run"
            made[case] = (watched(folder, CASES[case][0]), folder)
        return made[case]

    return run


@pytest.mark.parametrize("case", CASES)
def test_a_hang_is_explained(sick: Sick, case: str) -> None:
    _, code, sentence = CASES[case]
    done, folder = sick(case)
    assert done.returncode != 0
    live = [line for line in done.stderr.splitlines() if "chainerdoctor: stalled: " in line]
    if live:
        assert done.returncode == 1
        assert re.search(sentence, live[0].partition("stalled: ")[2]), live[0]
    found = sentences(folder)
    assert re.search(sentence, found.get(code, "")), found
    pids = [read_ring(path).head["pid"] for path in folder.glob("*.ring")]
    assert len(pids) == 3
    until = time.monotonic() + 5
    while time.monotonic() < until and any(spent_ticks(pid) is not None for pid in pids):
        time.sleep(0.05)
    assert not [pid for pid in pids if spent_ticks(pid) is not None]


def test_the_verdict_stands_without_one_rank_s_files(tmp_path: Path, sick: Sick) -> None:
    shutil.copytree(sick("lazy link")[1], tmp_path / "run")
    for path in (tmp_path / "run").glob("rank-00001.*"):
        path.unlink()
    found = sentences(tmp_path / "run")
    assert "because /extra/W was initialised at iteration 2; rank 0 is in multi_node_mean_grad #1" in found["CD433"]
    (tmp_path / "run" / "rank-00000.ring").write_bytes(os.urandom(100_000))
    assert "CD437" in sentences(tmp_path / "run") or "CD433" not in sentences(tmp_path / "run")


def test_stacks_of_all_ranks_are_kept(sick: Sick) -> None:
    """Two of them are in mpi4py's allreduce, which keeps the GIL."""
    for rank in range(3):
        assert "stall_collectives.py" in (sick("barrier of MPI")[1] / f"rank-{rank:05d}.stacks").read_text()


@pytest.mark.parametrize(
    "words",
    [
        "slow_rank_0.py --how compute --seconds 2.5",
        "slow_rank_0.py --how sleep --seconds 2.5",
        "slow_rank_0.py --how load --seconds 2.5",
        "stall_evaluator.py --how lengths --healthy",
        "stall_collectives.py --how messages --healthy",
        "stall_one_rank_ends.py --how shards --healthy",
    ],
)
def test_what_is_slow_or_healthy_is_no_stall(tmp_path: Path, words: str) -> None:
    done = watched(tmp_path / "run", words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "stalled" not in done.stderr
    assert sentences(tmp_path / "run") == {}
    assert done.stderr.count("has finished") + sum(1 for _ in re.finditer("has finished", done.stdout)) == 3


def test_report_leaves_the_program_as_it_is(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "chainerdoctor", "profile-comm", "-n", "2", "--out", str(tmp_path / "run")]
    command += ["--stall-timeout", "1s", str(SCRIPTS / "stall_lazy_link.py")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    assert child.stderr is not None
    for line in child.stderr:
        if "stacks of all ranks" in line:
            break
    time.sleep(0.5)
    assert child.poll() is None
    os.kill(child.pid, signal.SIGTERM)
    child.communicate(timeout=30)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["interrupted"] is True


def ring(tmp_path: Path) -> Ring:
    return Ring(ring_path(tmp_path, 0), {"rank": 0, "size": 2, "pid": os.getpid(), "node": "here"})


def test_a_ring_keeps_the_last_calls(tmp_path: Path) -> None:
    made = ring(tmp_path)
    for number in range(CALLS + 10):
        made.enter({"op": "allreduce", "i": number})
        made.leave()
    made.enter({"op": "gather", "i": -1})
    content = read_ring(ring_path(tmp_path, 0))
    assert [call["i"] for call in content.calls] == [*range(11, CALLS + 10), -1]
    assert content.inside is not None
    assert content.inside["op"] == "gather"


def test_a_ring_survives_sigkill_and_a_torn_slot(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys\nfrom pathlib import Path\nfrom chainerdoctor.instrument.ring import *\n"
        "r = Ring(ring_path(Path(sys.argv[1]), 0), {'rank': 0})\nr.enter({'op': 'allreduce', 'i': 1})\nr.leave()\n"
        "r.enter({'op': 'bcast', 'i': 2})\nos.kill(os.getpid(), signal.SIGKILL)\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    path = ring_path(tmp_path, 0)
    assert [call["op"] for call in read_ring(path).calls] == ["allreduce", "bcast"]
    data = bytearray(path.read_bytes())
    at = data.index(b'"bcast"')
    data[at] ^= 0xFF
    path.write_bytes(data)
    content = read_ring(path)
    assert [call["op"] for call in content.calls] == ["allreduce"]
    assert isinstance(whereabouts(content), Whereabouts)


def test_a_forked_child_does_not_write_its_parent_s_ring(tmp_path: Path) -> None:
    made = ring(tmp_path)
    pid = os.fork()
    if pid == 0:
        made.enter({"op": "allreduce"})
        os._exit(0)
    os.waitpid(pid, 0)
    assert read_ring(ring_path(tmp_path, 0)).calls == []


def test_code_without_line_numbers_can_be_looked_at() -> None:
    """Compilers add instructions that belong to no line; a thread may be seen in one."""
    if not hasattr(compile("", "", "exec"), "co_linetable"):
        pytest.skip("every instruction has a line before Python 3.10")
    seen: list = []
    activity = Activity()

    def look() -> None:
        thread = threading.Thread(target=lambda: seen.extend([activity.look(), place_of(sys._getframe(0))]))
        thread.start()
        thread.join()

    code = compile("def f():\n    look()\n", "/somewhere/train.py", "exec")
    bare = next(each for each in code.co_consts if hasattr(each, "co_code")).replace(co_linetable=b"")
    types.FunctionType(bare, {"look": look})()
    frames: list = []
    types.FunctionType(bare, {"look": lambda: frames.append(sys._getframe(1))})()
    assert frames[0].f_lineno is None or sys.version_info < (3, 11)
    assert place_of(frames[0])[0] == "train.py:1"
    assert seen[0]["place"]


def test_a_thread_that_has_ended_spends_nothing() -> None:
    activity = Activity()
    threads = [threading.Thread(target=time.sleep, args=(0.001,)) for _ in range(50)]
    for each in threads:
        each.start()
    for _ in range(50):
        assert activity.look()["idle"] >= 0
    for each in threads:
        each.join()
