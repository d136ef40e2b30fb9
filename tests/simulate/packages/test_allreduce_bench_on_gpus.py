"""allreduce-bench's nccl and chainermn backends through the real CuPy and ChainerMN on simulated GPUs and NCCL."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from chainerdoctor.simulate import environment

ROOT = Path(__file__).resolve().parents[3]
HEALTHY = "gpus = 3\n"
MODEL = "import chainer.links as L\n\ndef make_model():\n    return L.Classifier(L.Linear(50, 20))\n"


@pytest.fixture
def bench(programs, tmp_path):
    """bench(scenario, *arguments, mpi=…) -> (report, exit code)."""

    def run(text, *arguments, mpi="mpich"):
        (tmp_path / "machine.scn").write_text(text)
        (tmp_path / "model.py").write_text(MODEL)
        shared = tmp_path / "shared"
        shared.mkdir(exist_ok=True)
        python = programs("python", mpi)
        done = subprocess.run(
            [
                python,
                "-m",
                "chainerdoctor",
                "allreduce-bench",
                "-n",
                "3",
                "--seconds",
                "0.5",
                "--format",
                "json",
                *arguments,
            ],
            env={
                **{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"},
                **environment(tmp_path / "machine.scn", shared=shared),
                "PYTHONPATH": str(ROOT),
                "PATH": f"{os.path.dirname(python)}:/usr/bin:/bin",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.stdout.startswith("{"), done.stderr
        return json.loads(done.stdout), done.returncode

    return run


def found(report):
    return {v["code"]: [f["where"] for f in v["findings"]] for v in report["verdicts"] if v["findings"]}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_nccl_sums_rightly(bench, dtype, mpi):
    report, code = bench(HEALTHY, "--backend", "nccl", "--dtype", dtype, "--sizes", "8,1000,256KiB", mpi=mpi)
    assert (code, found(report)) == (0, {})
    assert [row[0] for row in report["tables"][0]["rows"]] == ["8", "1000", "262144"]
    assert {row[-1] for table in report["tables"][:2] for row in table["rows"]} == {"0"}


def test_auto_takes_nccl_where_every_rank_has_a_gpu(bench):
    report, _ = bench(HEALTHY, "--sizes", "8,1000")
    assert any("nccl" in pair["value"] for pair in report["checked"])
    report, _ = bench("gpus = 2\n", "--sizes", "8,1000")
    assert any(pair["value"].startswith("mpi ") for pair in report["checked"])


def test_one_flipped_bit_is_a_wrong_sum(bench):
    fault = "[rank 1]\nflip_at = 1\nflip_element = 3\nflip_bit = 22\n"
    report, code = bench(HEALTHY + fault, "--backend", "nccl", "--sizes", "64")
    assert code == 1
    assert "CD601" in found(report)


def test_a_rank_that_never_joins_costs_the_timeout(bench):
    report, code = bench(HEALTHY + "[rank 2]\njoins = no\n", "--backend", "nccl", "--sizes", "64", "--timeout", "10")
    assert code == 1
    assert "CD002" in found(report)


@pytest.mark.parametrize("communicator", ["pure_nccl", "flat", "non_cuda_aware", "naive"])
def test_gradients_by_each_communicator(bench, communicator):
    report, code = bench(HEALTHY, "--backend", f"chainermn:{communicator}", "--model", "model.py:make_model")
    assert (code, found(report)) == (0, {})
    assert report["tables"][0]["rows"][0][-1] == "0"
    parts = {row[0]: float(row[1]) for row in report["tables"][2]["rows"]}
    if communicator in ("pure_nccl", "flat"):
        assert parts["pack"] > 0
        assert parts["unpack"] > 0
