"""profile-comm and the stall autopsy over pure_nccl on four simulated GPUs, through the real CuPy."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from chainerdoctor.captures import read_run
from chainerdoctor.captures.meetings import clocks, timed_calls
from chainerdoctor.facts.comm import CommunicationTime, Lateness, Scaling
from chainerdoctor.instrumented import report_on_run
from chainerdoctor.simulate import environment

ROOT = Path(__file__).resolve().parents[3]

TRAIN = """
import sys, time
import numpy as np, chainer, chainer.functions as F, chainer.links as L, chainermn
where, seconds, double = sys.argv[1], 0.1, sys.argv[2] == "double"
comm = chainermn.create_communicator("pure_nccl")
chainer.backends.cuda.get_device_from_id(comm.intra_rank).use()
np.random.seed(0)
model = L.Classifier(chainer.Sequential(L.Linear(12, 16), F.relu, L.Linear(16, 4)))
model.to_device("@cupy:%d" % comm.intra_rank)
optimizer = chainermn.create_multi_node_optimizer(chainer.optimizers.SGD(0.01), comm, double_buffering=double)
optimizer.setup(model)
x = np.random.randn(64, 12).astype(np.float32)
iterator = chainer.iterators.SerialIterator(chainer.datasets.TupleDataset(x, np.zeros(64, "i")), 8, shuffle=False)
spent = 0.0
for n in range(16):
    batch = iterator.next()
    a, b = chainer.dataset.concat_examples(batch, device=comm.intra_rank)
    h = model.predictor(a)
    if where == "forward" and comm.rank == 2:
        began = time.monotonic()
        time.sleep(seconds)
        spent += (time.monotonic() - began) * (n > 0)
    loss = F.softmax_cross_entropy(h, b)
    model.cleargrads()
    loss.backward()
    optimizer.update()
    loss.array.get()
if double:
    optimizer.wait()
print("injected", spent, flush=True)
"""


@pytest.fixture
def profile(programs, tmp_path):
    """profile(arguments, options, scenario) -> (process, folder of the run)."""

    def run(arguments, *options, scenario=""):
        (tmp_path / "machine.scn").write_text("gpus = 4\n" + scenario)
        (tmp_path / "train.py").write_text(TRAIN)
        (tmp_path / "shared").mkdir(exist_ok=True)
        python = programs("python", "mpich")
        command = [python, "-m", "chainerdoctor", "profile-comm", "-n", "4", "--out", str(tmp_path / "run")]
        done = subprocess.run(
            [*command, *options, str(tmp_path / "train.py"), *arguments],
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
        return done, tmp_path / "run"

    return run


def test_a_late_gpu_is_blamed_by_events_on_streams(profile):
    done, folder = profile(["forward", "single"])
    assert done.returncode == 0, done.stdout + done.stderr
    seen, report = report_on_run(folder)
    injected = max(map(float, re.findall(r"injected ([\d.]+)", done.stdout)))
    assert injected > 15 * 0.1
    late = {each.rank: each.fact for each in seen.all(Lateness)}
    assert late[2].phases_s["forward"] == pytest.approx(injected, rel=0.1)
    assert max(fact.late_s for rank, fact in late.items() if rank != 2) < 0.1 * injected
    (finding,) = next(verdict.findings for verdict in report.found() if verdict.code == "CD650")
    assert finding.where.endswith("rank 2")
    run = read_run(folder)
    every = {rank.rank: timed_calls(rank, clocks(run)[rank.rank]) for rank in run.ranks}
    exchanges = [call for row in every.values() for call in row if call.operation == "multi_node_mean_grad"]
    assert len(exchanges) == 4 * 15  # the first update broadcasts the parameters instead
    assert all(call.on_stream and call.ended_s >= call.begun_s for call in exchanges)
    # 12 x 16 + 16 + 16 x 4 + 4 parameters of float32
    assert {call.size_bytes for call in exchanges} == {276 * 4}


def test_double_buffering_is_seen_as_an_exchange_beside_the_computing(profile):
    done, folder = profile(["none", "double"])
    assert done.returncode == 0, done.stdout + done.stderr
    seen, _ = report_on_run(folder)
    (scaling,) = (each.fact for each in seen.all(Scaling))
    assert scaling.asynchronous
    assert scaling.ranks == 4
    assert {each.fact.operation for each in seen.all(CommunicationTime)} == {"multi_node_mean_grad (async)"}


def test_a_healthy_run_on_gpus_blames_nobody(profile):
    done, folder = profile(["none", "single"])
    assert done.returncode == 0, done.stdout + done.stderr
    _, report = report_on_run(folder)
    assert [verdict.code for verdict in report.found() if verdict.code != "CD651"] == []


def test_a_hang_inside_nccl_is_explained_and_ended(profile):
    hang = "[call ncclAllReduce rank 2]\nat = 9\nblock = forever\n"
    done, folder = profile(["none", "single"], "--stall-timeout", "3s", "--on-stall", "abort", scenario=hang)
    assert done.returncode == 1, done.stdout + done.stderr
    (sentence,) = set(re.findall("chainerdoctor: stalled: (.*)", done.stderr))
    assert re.search(r"multi_node_mean_grad #\d+ at train\.py:\d+", sentence), sentence
    found = {verdict.code: verdict.findings[0].message for verdict in report_on_run(folder)[1].found()}
    assert {code: text for code, text in found.items() if code.startswith("CD4")} == {"CD436": sentence}
