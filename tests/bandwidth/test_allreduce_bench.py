"""``allreduce-bench`` on real ranks of both MPIs, and with faults."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
MPICH = sys.executable
OPENMPI = os.environ.get("CHAINERDOCTOR_OPENMPI_PYTHON", str(ROOT / ".venv-openmpi" / "bin" / "python"))

#: Puts a fault into one rank; the product has no such thing in it.
FAULT = """
import os
fault = os.environ.get("FAULT", "")
rank = os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK") or ""
if fault and rank:
    import time
    from chainerdoctor.workloads.allreduce import checking, pairs
    kind, _, who = fault.partition(":")
    # Through a module that the program calls for each size (it runs as __main__ itself).
    plain = checking.numbers
    def numbers(numpy, count, own, dtype):
        if kind == "stuck" and rank == who:
            time.sleep(3600)
        if kind == "killed" and rank == who and count > 500:
            os.kill(os.getpid(), 9)
        return plain(numpy, count, own, dtype) + (kind == "wrong" and rank == who)
    checking.numbers = numbers
    swap = pairs.exchange
    def slow(world, other, given, taken):
        me = world.Get_rank()
        if kind == "link" and sorted((me, other)) == sorted(map(int, who.split("-"))):
            time.sleep(0.02)
        if kind == "rank" and int(who) in (me, other):
            time.sleep(0.02)
        swap(world, other, given, taken)
    pairs.exchange = slow
    work = pairs.work
    def late():
        work()
        if kind == "late" and rank == who:
            time.sleep(float(os.environ.get("FAULT_LATE_S", "0.02")))
    pairs.work = late
"""


def bench(python: str, tmp_path: Path, *arguments: str, fault: str = "", meanwhile=None) -> tuple:
    """(report or None, exit code, standard error)."""
    (tmp_path / "sitecustomize.py").write_text(FAULT)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PMI_", "OMPI_", "SLURM_"))}
    environ = {
        **clean,
        "PATH": f"{os.path.dirname(python)}:/usr/bin:/bin",
        "PYTHONPATH": f"{tmp_path}:{ROOT}",
        "FAULT": fault,
        # A machine that runs the tests of others beside these ones has naps of 20 ms itself.
        "FAULT_LATE_S": "0.1",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }
    line = [python, "-m", "chainerdoctor", "allreduce-bench", "--format", "json", *arguments]
    done = subprocess.run(line, env=environ, cwd=tmp_path, capture_output=True, text=True, timeout=200)
    return (json.loads(done.stdout) if done.stdout.startswith("{") else None), done.returncode, done.stderr


def found(report: dict) -> dict:
    return {v["code"]: [f["where"] for f in v["findings"]] for v in report["verdicts"] if v["findings"]}


def needs_numpy(python: str) -> None:
    if subprocess.run([python, "-c", "import numpy"], capture_output=True).returncode:
        pytest.fail(f"{python} has no NumPy; run: make venv-test")


#: Chainer runs on Python 3.8 to 3.11; on others what needs it is left out by name.
CHAINER = pytest.mark.skipif(sys.version_info >= (3, 12), reason="Chainer 7.8.1 does not run on this Python")


@pytest.fixture(params=["mpich", "openmpi"])
def python(request: pytest.FixtureRequest) -> str:
    path = MPICH if request.param == "mpich" else OPENMPI
    needs_numpy(path)
    return path


@pytest.mark.parametrize(("ranks", "dtype"), [(2, "float32"), (3, "float64"), (1, "float32")])
def test_sums_are_right_and_every_size_is_told(python: str, tmp_path: Path, ranks: int, dtype: str) -> None:
    saved = tmp_path / "saved.json"
    report, code, words = bench(
        python, tmp_path, "-n", str(ranks), "--sizes", "8,1000,64KiB,1MiB", "--dtype", dtype, "--seconds", "1",
        "--save", str(saved),
    )  # fmt: skip
    assert code == 0, words
    assert found(report) == {}
    out_of_place, in_place, _ = report["tables"][:3]
    width = {"float32": 4, "float64": 8}[dtype]
    for table in (out_of_place, in_place):
        assert [int(row[0]) for row in table["rows"]] == [8, 1000, 65536, 2**20]
        assert [int(row[1]) for row in table["rows"]] == [size // width for size in (8, 1000, 65536, 2**20)]
        assert {row[-1] for row in table["rows"]} == {"0"}
        for row in table["rows"]:  # the definitions of nccl-tests, from the row's own time
            algbw = int(row[0]) / (float(row[4]) * 1e-6) / 1e9
            assert float(row[5]) == pytest.approx(algbw, rel=0.2, abs=0.0016)
            assert float(row[6]) == pytest.approx(algbw * 2 * (ranks - 1) / ranks, rel=0.2, abs=0.0016)
    told = [s for s in json.loads(saved.read_text())["sightings"] if s["fact"]["kind"] == "AllreduceTiming"]
    assert len(told) == ranks * 4 * 2


def test_a_rank_that_sums_wrong_is_seen(tmp_path: Path) -> None:
    report, code, words = bench(MPICH, tmp_path, "-n", "3", "--sizes", "64,4096", "--seconds", "0.5", fault="wrong:1")
    assert code == 1, words
    assert len(found(report)["CD601"]) == 3  # every rank got the wrong sum


def test_a_rank_that_is_killed_leaves_a_partial_report(python: str, tmp_path: Path) -> None:
    report, code, words = bench(
        python, tmp_path, "-n", "3", "--sizes", "8,64,4096", "--seconds", "0.5", "--timeout", "20", fault="killed:1"
    )
    assert code == 1, words
    assert "CD002" in found(report)
    assert any(pair["label"] == "PARTIAL:" for pair in report["checked"])
    assert [row[0] for row in report["tables"][0]["rows"]][:2] == ["8", "64"]  # what was measured before is kept


def test_a_rank_that_is_stuck_costs_the_timeout_and_no_more(tmp_path: Path) -> None:
    began = time.monotonic()
    report, code, words = bench(
        MPICH, tmp_path, "-n", "3", "--sizes", "8,64", "--seconds", "0.5", "--timeout", "8", fault="stuck:2"
    )
    assert code == 1, words
    assert time.monotonic() - began < 8 + 12
    assert "CD002" in found(report)


@pytest.mark.parametrize(
    ("fault", "wanted"),
    [
        ("", {}),
        ("link:1-4", {"CD605": ["ranks 1–4"]}),
        ("rank:3", {"CD604": ["{h}/rank 3"]}),
        ("late:2", {"CD606": ["{h}/rank 2"]}),
    ],
)
def test_who_is_slow(tmp_path: Path, fault: str, wanted: dict) -> None:
    report, _, words = bench(
        MPICH, tmp_path, "-n", "6", "--sizes", "8", "--seconds", "0.3", "--pairwise", "--timeout", "60", fault=fault
    )
    assert report is not None, words
    host = os.uname().nodename
    assert found(report) == {code: [w.replace("{h}", host) for w in wheres] for code, wheres in wanted.items()}


@CHAINER
def test_gradients_of_a_model_by_chainermn(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import chainer.links as L\n\ndef make_model():\n    return L.Classifier(L.Linear(50, 20))\n"
    )
    report, code, words = bench(
        MPICH, tmp_path, "-n", "2", "--backend", "chainermn:naive", "--model", "model.py:make_model", "--seconds", "0.5"
    )
    assert code == 0, words
    # 50·20 weights and 20 biases, float32.
    assert (report["tables"][0]["rows"][0][0], report["tables"][0]["rows"][0][1]) == ("4080", "1020")
    assert report["tables"][0]["rows"][0][-1] == "0"
    assert report["tables"][2]["rows"][0][0] == "pack"


def test_floor_and_baseline(tmp_path: Path) -> None:
    saved = tmp_path / "healthy.json"
    common = ["-n", "2", "--sizes", "1MiB,4MiB", "--seconds", "0.5"]
    report, code, _ = bench(MPICH, tmp_path, *common, "--save", str(saved), "--min-busbw", "0.001")
    assert code == 0
    report, code, _ = bench(MPICH, tmp_path, *common, "--min-busbw", "100000")
    assert code == 1
    assert len(found(report)["CD602"]) == 4  # each size, in place and not: never a mean
    # A gate that compares nothing must not pass.
    report, code, _ = bench(MPICH, tmp_path, "-n", "2", "--sizes", "8", "--seconds", "0.2", "--min-busbw", "100000")
    assert (code, list(found(report))) == (1, ["CD609"])
    report, code, _ = bench(MPICH, tmp_path, "-n", "1", "--sizes", "1MiB", "--baseline", str(saved))
    assert (code, list(found(report))) == (1, ["CD609"])
    raised = json.loads(saved.read_text())
    for seen in raised["sightings"]:
        if seen["fact"]["kind"] == "AllreduceTiming":
            seen["fact"]["median_s"] /= 1000
    (tmp_path / "better.json").write_text(json.dumps(raised))
    report, code, _ = bench(MPICH, tmp_path, *common, "--baseline", str(tmp_path / "better.json"))
    assert code == 1
    assert "CD603" in found(report)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dtype", "float16", "--backend", "mpi"], "MPI has no standard 16-bit float"),
        (["--backend", "nccl"], "CuPy's NCCL"),
        (["--sizes", "4TiB"], "GiB of memory on each rank"),
        pytest.param(["--model", "nosuch", "--sizes", "8"], "no model 'nosuch'", marks=CHAINER),
        pytest.param(
            ["--backend", "chainermn:naive", "--model", "broken.py:make_model"], "ZeroDivisionError", marks=CHAINER
        ),
    ],
)
def test_what_cannot_be_measured_is_said(tmp_path: Path, arguments: list, words: str) -> None:
    (tmp_path / "broken.py").write_text("1 / 0\n")
    report, code, errors = bench(MPICH, tmp_path, "-n", "2", "--seconds", "0.3", "--timeout", "40", *arguments)
    assert code == 1, errors
    assert words in json.dumps([v for v in report["verdicts"] if v["code"] == "CD607"], ensure_ascii=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--backend", "foo"], "no backend 'foo'"),
        (["--backend", "chainermn:hierarchical"], "no communicator 'hierarchical'"),
        (["--min", "2MiB", "--max", "1MiB"], "larger than"),
        (["--sizes", "eight"], "no size"),
        (["--tolerance", "x"], "write 10% or 0.1"),
        (["--compare-env", "FOO"], "write NAME=VALUE"),
        (["--baseline", "/nonexistent.json"], "No such file"),
        (["--dtype", "int8"], "int8"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(tmp_path: Path, arguments: list, words: str) -> None:
    _, code, errors = bench(MPICH, tmp_path, *arguments)
    assert code == 2
    assert words in errors
    assert "Traceback" not in errors


def test_interrupted_it_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FAULT)
    mark = f"BENCH_TEST={tmp_path}"
    environ = {**os.environ, "PYTHONPATH": f"{tmp_path}:{ROOT}", "FAULT": "stuck:1", "BENCH_TEST": str(tmp_path)}
    environ["PATH"] = f"{os.path.dirname(MPICH)}:/usr/bin:/bin"
    process = subprocess.Popen(
        [MPICH, "-m", "chainerdoctor", "allreduce-bench", "-n", "2", "--sizes", "8"],
        env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip

    def left() -> list:
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark.encode() in path.read_bytes():
                    found.append(path.parent.name)
            except OSError:
                continue
        return found

    until = time.monotonic() + 30
    while len(left()) < 4 and time.monotonic() < until:
        time.sleep(0.1)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    until = time.monotonic() + 5
    while left() and time.monotonic() < until:
        time.sleep(0.1)
    assert left() == []
