"""Phases and iterations are seen, and the training's results stay what they were, bit for bit."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chainerdoctor.instrument.spool import Capture, read_capture
from chainerdoctor.instrument.training import PHASES

pytest.importorskip("chainer", reason="Chainer runs on Python 3.8 to 3.11 here") if sys.version_info < (3, 12) else (
    pytest.skip("Chainer runs on Python 3.8 to 3.11 here", allow_module_level=True)
)

SCRIPTS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "scripts"

#: Sleeps of known length in each phase, in milliseconds; three iterations.
CUSTOM_LOOP = """
import time, sys
import numpy as np, chainer, chainer.functions as F, chainer.links as L

class Slow(chainer.FunctionNode):
    def forward(self, inputs):
        time.sleep(0.03)
        return inputs
    def backward(self, indexes, gradients):
        time.sleep(0.05)
        return gradients

class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.l = L.Linear(3, 2)
    def forward(self, x):
        return F.sum(Slow().apply((self.l(x),))[0])

class Data(chainer.dataset.DatasetMixin):
    def __len__(self):
        return 4
    def get_example(self, i):
        time.sleep(0.01)
        return np.ones(3, np.float32),

class SlowSGD(chainer.optimizers.SGD):
    def update(self, *args, **kwargs):
        super().update(*args, **kwargs)

model = Model()
optimizer = SlowSGD(0.1).setup(model)
optimizer.add_hook(type("Hook", (), {"name": "slow", "timing": "pre", "call_for_each_param": False,
                                     "__call__": lambda self, o: time.sleep(0.02)})())
"""
LOOP = """
iterator = chainer.iterators.SerialIterator(Data(), 4)
for n in range(3):
    batch = chainer.dataset.concat_examples(iterator.next())
    loss = model(*batch)
    model.cleargrads()
    loss.backward()
    optimizer.update()
    with chainer.using_config("train", False), chainer.no_backprop_mode():
        model(*batch)
    time.sleep(0.015)
"""
TRAINER = """
from chainer.training import Trainer, StandardUpdater, extensions
iterator = chainer.iterators.SerialIterator(Data(), 4)
trainer = Trainer(StandardUpdater(iterator, optimizer), (3, "iteration"), out=sys.argv[1])
test = chainer.iterators.SerialIterator(Data(), 4, repeat=False, shuffle=False)
trainer.extend(extensions.Evaluator(test, model, eval_func=lambda x: model(x)), trigger=(1, "iteration"))
trainer.extend(lambda t: time.sleep(0.025), trigger=(1, "iteration"), name="slow")
trainer.run()
"""


def recorded(tmp_path: Path, script: str, *arguments: str) -> Capture:
    (tmp_path / "train.py").write_text(script)
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"kind": "chainerdoctor run", "instruments": {}}))
    command = [sys.executable, "-m", "chainerdoctor.instrument", "--run", str(run), str(tmp_path / "train.py")]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return read_capture(str(run / "rank-00000.capture"))


def milliseconds(capture: Capture, number: int) -> dict:
    record = capture.all("iteration")[number]
    return {name: ns / 1e6 for name, ns in zip(PHASES, record["ns"])}


def assert_about(seen: dict, wanted: dict) -> None:
    """Each phase holds at least its sleep; what else it holds is less than the next sleep that could be in the wrong."""
    for phase, slept in wanted.items():
        assert slept <= seen[phase], (phase, seen)
    total = sum(wanted.values())
    assert sum(seen.values()) < total + 60, seen
    for phase in set(PHASES) - set(wanted):
        assert seen[phase] < 9, (phase, seen)


def test_phases_of_a_custom_loop(tmp_path: Path) -> None:
    capture = recorded(tmp_path, CUSTOM_LOOP + LOOP)
    assert capture.all("failed") == []
    assert [record["n"] for record in capture.all("iteration")] == [1, 2, 3]
    # The evaluation after an update belongs to the iteration that its successor completes.
    wanted = {"data": 40, "forward": 30, "backward": 50, "update": 20, "evaluation": 30 + 15}
    assert_about(milliseconds(capture, 1), wanted)
    assert_about(milliseconds(capture, 2), wanted)


def test_phases_of_a_trainer(tmp_path: Path) -> None:
    capture = recorded(tmp_path, CUSTOM_LOOP + TRAINER, str(tmp_path / "result"))
    assert capture.all("failed") == []
    assert [record["n"] for record in capture.all("iteration")] == [1, 2, 3]
    wanted = {"data": 40, "forward": 30, "backward": 50, "update": 20, "evaluation": 40 + 30, "extension": 25}
    assert_about(milliseconds(capture, 1), wanted)
    assert capture.last("end")["iterations"] == 3


GAN = """
import numpy as np, chainer, chainer.links as L, chainer.functions as F
a, b = L.Linear(2, 2), L.Linear(2, 2)
first, second = chainer.optimizers.SGD(0.1).setup(a), chainer.optimizers.SGD(0.1).setup(b)
x = np.ones((2, 2), "f")
for n in range(4):
    for link, optimizer in ((a, first), (b, second)):
        link.cleargrads()
        F.sum(link(x)).backward()
        optimizer.update()
"""


def test_two_optimizers_make_one_iteration(tmp_path: Path) -> None:
    assert len(recorded(tmp_path, GAN).all("iteration")) == 4


RESULTS = """
import hashlib, sys
import numpy as np, chainer, chainer.functions as F, chainer.links as L
def digest(model, *more):
    h = hashlib.sha256()
    for name, p in sorted(model.namedparams()):
        h.update(name.encode()); h.update(p.array.tobytes())
    for each in more: h.update(np.asarray(each).tobytes())
    return h.hexdigest()
class Net(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.c = L.Convolution2D(1, 4, 3); self.bn = L.BatchNormalization(4); self.l = L.Linear(None, 3)
    def forward(self, x):
        return self.l(F.dropout(F.relu(self.bn(self.c(x))), 0.3))
np.random.seed(1)
x = np.random.randn(40, 1, 6, 6).astype("f"); t = np.random.randint(0, 3, 40).astype("i")
data = chainer.datasets.TupleDataset(x, t)
model = L.Classifier(Net())
"""
HOW = {
    "trainer": """
optimizer = chainer.optimizers.Adam().setup(model)
losses = []
it = chainer.iterators.SerialIterator(data, 8)
t = chainer.training.Trainer(chainer.training.StandardUpdater(it, optimizer), (20, "iteration"), out=sys.argv[1])
t.extend(lambda t: losses.append(float(t.observation["main/loss"].array)), trigger=(1, "iteration"))
t.run()
print(digest(model, losses))
""",
    "custom": """
optimizer = chainer.optimizers.MomentumSGD(0.05).setup(model)
optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(1.0))
it = chainer.iterators.SerialIterator(data, 8)
losses = []
for n in range(20):
    a, b = chainer.dataset.concat_examples(it.next())
    loss = model(a, b); model.cleargrads(); loss.backward(); optimizer.update(); losses.append(float(loss.array))
print(digest(model, losses, np.random.rand(3)))
""",
    "workers": """
if __name__ == "__main__":
    optimizer = chainer.optimizers.SGD(0.05).setup(model)
    # Its own random state: the iterator shuffles in a thread, beside the dropout's draws.
    order = chainer.iterators.ShuffleOrderSampler(np.random.RandomState(3))
    it = chainer.iterators.MultiprocessIterator(data, 8, n_processes=2, order_sampler=order)
    t = chainer.training.Trainer(chainer.training.StandardUpdater(it, optimizer), (20, "iteration"), out=sys.argv[1])
    t.run()
    print(digest(model))
""",
}
INSTRUMENTS = [{}, {"gradients": {"across_ranks": True}}]


@pytest.mark.parametrize("instruments", INSTRUMENTS, ids=lambda wishes: "+".join(wishes) or "none")
@pytest.mark.parametrize("how", HOW)
def test_results_are_the_same_bit_for_bit(tmp_path: Path, how: str, instruments: dict) -> None:
    (tmp_path / "train.py").write_text(RESULTS + HOW[how])
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"kind": "chainerdoctor run", "instruments": instruments}))
    script = [str(tmp_path / "train.py"), str(tmp_path / "result")]
    plain = subprocess.run([sys.executable, *script], capture_output=True, text=True)
    watched = subprocess.run(
        [sys.executable, "-m", "chainerdoctor.instrument", "--run", str(run), *script], capture_output=True, text=True
    )
    assert plain.returncode == 0, plain.stderr
    assert plain.stdout
    assert watched.stdout == plain.stdout
    assert watched.stderr == plain.stderr
    assert len(read_capture(str(run / "rank-00000.capture")).all("iteration")) == 20


@pytest.mark.parametrize("instruments", INSTRUMENTS, ids=lambda wishes: "+".join(wishes) or "none")
def test_results_of_ranks_are_the_same(tmp_path: Path, instruments: dict) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "run.json").write_text(json.dumps({"kind": "chainerdoctor run", "instruments": instruments}))
    mpiexec = str(Path(sys.executable).parent / "mpiexec")
    script = [str(SCRIPTS / "healthy_naive_ranks.py"), "--iterations", "10"]
    plain = subprocess.run([mpiexec, "-n", "2", sys.executable, *script], capture_output=True, text=True)
    watched = subprocess.run(
        [mpiexec, "-n", "2", sys.executable, "-m", "chainerdoctor.instrument", "--run", str(run), *script],
        capture_output=True,
        text=True,
        env=dict(os.environ),
    )
    assert plain.stdout
    assert watched.stdout == plain.stdout
    for rank in range(2):
        capture = read_capture(str(run / f"rank-{rank:05d}.capture"))
        records = capture.all("iteration")
        assert len(records) == 10
        exchanged = PHASES.index("all-reduce")
        assert all(record["ns"][exchanged] > 0 for record in records)
