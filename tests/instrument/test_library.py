"""``chainerdoctor.watch`` and the Trainer extension see what the command sees."""

import subprocess
import sys
from pathlib import Path

import pytest

from chainerdoctor.captures import read_run, snapshot_of
from chainerdoctor.facts.gradients import GradientSeries, NumberBroke
from chainerdoctor.facts.run import ProgramEnd

if sys.version_info >= (3, 12):
    pytest.skip("Chainer runs on Python 3.8 to 3.11 here", allow_module_level=True)

PROGRAM = """
import numpy as np, chainer, chainer.links as L, chainerdoctor
np.random.seed(0)
x, t = np.random.randn(64, 5).astype("f"), np.zeros(64, "i")
model = L.Classifier(L.Linear(5, 3))
optimizer = chainer.optimizers.Adam().setup(model)

def loop(count, bad=-1):
    for n in range(count):
        x[0, 0] = np.nan if n == bad else 1
        model.cleargrads()
        model(x, t).backward()
        optimizer.update()
"""


def run(tmp_path: Path, program: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "train.py").write_text(PROGRAM + program)
    return subprocess.run([sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True)


def test_a_block_is_watched_and_reported(tmp_path: Path) -> None:
    program = """
with chainerdoctor.watch(optimizer, out="first"):
    loop(5)
loop(3)
with chainerdoctor.watch(optimizer, out="second", report=False):
    loop(4)
assert not hasattr(chainer.FunctionNode.apply, "_chainerdoctor")
assert not chainer.get_function_hooks()
"""
    done = run(tmp_path, program)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("chainerdoctor check-gradients:") == 1
    for name, count in (("first", 5), ("second", 4)):
        seen = snapshot_of(read_run(tmp_path / name))
        assert seen.all(GradientSeries)[0].fact.steps == tuple(range(1, count + 1))
        assert seen.all(ProgramEnd)[0].fact.iterations == count


def test_a_fault_ends_the_program_where_that_is_wanted(tmp_path: Path) -> None:
    done = run(
        tmp_path, 'with chainerdoctor.watch(optimizer, out="w", stop_on="error"):\n    loop(5, bad=2)\nprint("on")\n'
    )
    assert done.returncode == 1
    assert "CD801" in done.stdout
    assert "on\n" not in done.stdout
    (broke,) = snapshot_of(read_run(tmp_path / "w")).all(NumberBroke)
    assert (broke.fact.iteration, broke.fact.stage) == (3, "input")


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    program = """
with chainerdoctor.watch(optimizer, out="a", report=False):
    try:
        with chainerdoctor.watch(optimizer, out="b"):
            pass
    except RuntimeError as error:
        print(error)
"""
    assert "already" in run(tmp_path, program).stdout


@pytest.mark.parametrize("raises", [False, True])
def test_the_extension(tmp_path: Path, raises: bool) -> None:
    program = f"""
from chainer.training import Trainer, StandardUpdater
iterator = chainer.iterators.SerialIterator(chainer.datasets.TupleDataset(x, t), 8)
trainer = Trainer(StandardUpdater(iterator, optimizer), (3, "epoch"), out="result")
trainer.extend(chainerdoctor.GradientMonitor(out="w"))
def fail(trainer):
    raise ValueError("boom")
if {raises}:
    trainer.extend(fail, trigger=(10, "iteration"))
trainer.run()
"""
    done = run(tmp_path, program)
    assert done.returncode == int(raises), done.stderr
    assert "chainerdoctor check-gradients:" in done.stdout
    (end,) = snapshot_of(read_run(tmp_path / "w")).all(ProgramEnd)
    assert (end.fact.how, end.fact.iterations) == (("raised", 10) if raises else ("returned", 24))
