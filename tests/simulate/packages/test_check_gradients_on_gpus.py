"""check-gradients through the real CuPy on simulated GPUs, and over pure_nccl on four of them."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from chainerdoctor.simulate import environment

ROOT = Path(__file__).resolve().parents[3]

ONE = """
import sys
import numpy as np, chainer, chainer.functions as F, chainer.links as L
fault, dtype = sys.argv[1], sys.argv[2]
chainer.global_config.dtype = chainer.mixed16 if dtype == "mixed16" else np.dtype(dtype)
chainer.backends.cuda.get_device_from_id(0).use()
class Sharp(chainer.FunctionNode):
    def forward(self, inputs):
        return inputs
    def backward(self, indexes, gy):
        return gy[0] / np.array(0, gy[0].dtype).item() if gy[0].dtype.kind == "i" else gy[0] * float("inf"),
class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        self.calls = 0
        with self.init_scope():
            self.a = L.Linear(6, 8)
            self.b = L.Linear(8, 3)
    def forward(self, x):
        self.calls += 1
        bad = self.calls == 4
        h = F.relu(self.a(x))
        if bad and fault == "log":
            h = F.log(h - 0.1)  # HERE log
        if bad and fault == "_ * _":
            h = (h + 300) * (h + 300)  # HERE _ * _
        if bad and fault == "Sharp":
            h = Sharp().apply((h,))[0]  # HERE Sharp
        return self.b(h)
np.random.seed(0)
model = L.Classifier(Net())
model.to_device("@cupy:0")
optimizer = chainer.optimizers.SGD(0.01)
optimizer.setup(model)
kind = "float32" if dtype == "float32" else "float16"
x = model.xp.asarray(np.random.randn(12, 6).astype(kind))
t = model.xp.asarray(np.random.randint(0, 3, 12).astype("i"))
def norm(optimizer):
    print("norm", sum(float((p.grad.get().astype("float64") ** 2).sum()) for p in model.params()) ** 0.5)
norm.timing, norm.call_for_each_param = "pre", False
optimizer.add_hook(norm, "norm")
for n in range(6):
    loss = model(x, t)
    model.cleargrads()
    loss.backward()
    optimizer.update()
"""

FOUR = """
import sys
import numpy as np, chainer, chainer.functions as F, chainer.links as L, chainermn
fault = sys.argv[1]
comm = chainermn.create_communicator("pure_nccl")
chainer.backends.cuda.get_device_from_id(comm.intra_rank).use()
np.random.seed(0)
x = np.random.randn(256, 12).astype(np.float32)
t = x[:, :4].argmax(axis=1).astype(np.int32)
data = chainermn.scatter_dataset(chainer.datasets.TupleDataset(x, t), comm, shuffle=True, seed=1)
model = L.Classifier(chainer.Sequential(L.Linear(12, 16), F.relu, L.Linear(16, 4)))
model.to_device("@cupy:%d" % comm.intra_rank)
optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.SGD(0.1), comm)
optimizer.setup(model)
def drift(optimizer):
    for p in optimizer.target.params():
        p.grad[...] += 0.01 * comm.rank
drift.timing, drift.call_for_each_param = "pre", False
if fault == "drift":
    optimizer.add_hook(drift, "drift")
iterator = chainer.iterators.SerialIterator(data, 16, shuffle=False)
for n in range(12):
    a, b = chainer.dataset.concat_examples(iterator.next(), device=comm.intra_rank)
    if fault == "nan" and comm.rank == 2 and n == 5:
        a[0, 0] = np.nan
    loss = model(a, b)
    model.cleargrads()
    loss.backward()
    optimizer.update()
"""


@pytest.fixture
def check(programs, tmp_path):
    """check(script, arguments, options) -> (report, the program's own output)."""

    def run(text, arguments, *options, mpi="mpich"):
        (tmp_path / "machine.scn").write_text("gpus = 4\n")
        (tmp_path / "train.py").write_text(text)
        (tmp_path / "shared").mkdir(exist_ok=True)
        python = programs("python", mpi)
        command = [python, "-m", "chainerdoctor", "check-gradients", *options, "--out", str(tmp_path / "run")]
        done = subprocess.run(
            [*command, "--format", "json", "-o", str(tmp_path / "report.json"), str(tmp_path / "train.py"), *arguments],
            env={
                **{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"},
                **environment(tmp_path / "machine.scn", shared=tmp_path / "shared"),
                "PYTHONPATH": str(ROOT),
                "PATH": f"{os.path.dirname(python)}:/usr/bin:/bin",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert (tmp_path / "report.json").exists(), done.stderr
        return json.loads((tmp_path / "report.json").read_text()), done.stdout

    return run


def found(report):
    return {v["code"]: v["findings"] for v in report["verdicts"] if v["findings"] or v["status"] == "crashed"}


@pytest.mark.parametrize(
    ("fault", "dtype"),
    [("log", "float32"), ("_ * _", "float16"), ("_ * _", "mixed16"), ("Sharp", "float32"), ("Sharp", "float16")],
)
def test_the_operation_on_a_gpu_is_named(check, fault, dtype):
    report, _ = check(ONE, [fault, dtype])
    (finding,) = found(report)["CD801"]
    assert "iteration 4" in finding["message"]
    assert fault in finding["message"]
    line = next(n for n, text in enumerate(ONE.splitlines(), 1) if text.endswith(f"HERE {fault}"))
    places = [each["seen"] for each in finding["evidence"] if each["what"] == "line"]
    assert places[0].endswith(f"train.py:{line}")


@pytest.mark.parametrize("dtype", ["float32", "float16", "mixed16"])
def test_norms_on_a_gpu_are_right_and_healthy_training_is_silent(check, tmp_path, dtype):
    report, output = check(ONE, ["none", dtype])
    assert found(report) == {}
    from chainerdoctor.captures import read_run, snapshot_of
    from chainerdoctor.facts.gradients import GradientSeries

    (series,) = snapshot_of(read_run(tmp_path / "run")).all(GradientSeries)
    printed = [float(line.split()[1]) for line in output.splitlines() if line.startswith("norm")]
    assert list(series.fact.norm) == pytest.approx(printed, rel=1e-6)
    assert len(printed) == 6


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
@pytest.mark.parametrize(
    ("fault", "wanted"), [("none", {}), ("nan", {"CD801": "rank 2"}), ("drift", {"CD820": "ranks 1–3"})]
)
def test_four_ranks_over_nccl(check, mpi, fault, wanted):
    report, _ = check(FOUR, [fault], "-n", "4", "--across-ranks", mpi=mpi)
    told = {code: findings[0]["where"].rpartition("/")[2] for code, findings in found(report).items()}
    assert told == wanted
    assert all(len(findings) == 1 for findings in found(report).values())
