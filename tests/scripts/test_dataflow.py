"""What the reader of scripts follows: aliases, helpers, guards, attributes, contexts, arguments, other files.

Each case is a script as people write them, with the codes that must and must not be told of it.
"""

import textwrap
from pathlib import Path
from typing import Dict, List, Set

import pytest

from chainerdoctor.findings import FOUND
from chainerdoctor.judging import judge
from chainerdoctor.scripts.gather import read_scripts, script_rules


def told(folder: Path, files: Dict[str, str]) -> Dict[str, List[str]]:
    """Code → places ("file:line") of all findings in these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    snapshot = read_scripts([str(folder)], now_s=0.0)
    return {
        verdict.code: [finding.where.replace(f"{folder}/", "") for finding in verdict.findings]
        for verdict in judge(snapshot, script_rules())
        if verdict.status == FOUND
    }


def one(folder: Path, text: str) -> Set[str]:
    return set(told(folder, {"train.py": text}))


SETUP = """
import chainer
import chainermn
import chainer.functions as F
import chainer.links as L
from chainer import training
"""

FOUND_CASES = {
    "alias of a module": ("CD910", "import chainermn as mn\ncomm = mn.create_communicator('hierarchical')\n"),
    "alias of a function": (
        "CD910",
        "from chainermn import create_communicator as make\nname = 'two_dimensional'\ncomm = make(name)\n",
    ),
    "from chainer import cuda": ("CD936", "from chainer import cuda\ncuda.get_device(0).use()\n"),
    "communicator passed to a helper": (
        "CD916",
        SETUP
        + """
def load(comm):
    if comm.rank == 0:
        return chainermn.scatter_dataset(list(range(9)), comm)

def main():
    comm = chainermn.create_communicator('naive')
    load(comm)
main()
""",
    ),
    "communicator kept in an attribute": (
        "CD916",
        SETUP
        + """
class Run:
    def __init__(self):
        self.comm = chainermn.create_communicator('naive')
    def share(self, x):
        if self.comm.rank == 0:
            self.comm.bcast_obj(x)
Run().share(1)
""",
    ),
    "guard turned round, with an early return": (
        "CD916",
        SETUP
        + """
def main():
    comm = chainermn.create_communicator('naive')
    if comm.rank != 0:
        return
    comm.allreduce_obj(1)
main()
""",
    ),
    "plain optimizer through a helper": (
        "CD912",
        SETUP
        + """
def make_optimizer(model):
    optimizer = chainer.optimizers.Adam()
    optimizer.setup(model)
    return optimizer

comm = chainermn.create_communicator('naive')
data = chainermn.scatter_dataset(list(range(9)), comm)
it = chainer.iterators.SerialIterator(data, 2)
updater = training.StandardUpdater(it, make_optimizer(L.Linear(3, 2)))
""",
    ),
    "iterator of the evaluation made by a function": (
        "CD930",
        SETUP
        + """
def iterator(data):
    return chainer.iterators.SerialIterator(data, 8)
test = iterator([1, 2])
ev = training.extensions.Evaluator(test, L.Classifier(L.Linear(3)))
""",
    ),
    "loss scale set on what a function gave back": (
        "CD923",
        SETUP + "def make():\n    return chainer.optimizers.SGD()\nopt = make()\nopt.loss_scale = 128\n",
    ),
    "environment variable set by update": (
        "CD922",
        SETUP + "import os\nos.environ['CHAINERMN_FORCE_ABORT_ON_EXCEPTIONS'] = '1'\n",
    ),
}


@pytest.mark.parametrize("name", FOUND_CASES)
def test_is_followed(name: str, tmp_path: Path) -> None:
    code, text = FOUND_CASES[name]
    assert code in one(tmp_path, text)


CLEAR_CASES = {
    "a function of the same name": (
        "CD910",
        "def create_communicator(name):\n    return name\ncreate_communicator('hierarchical')\n",
    ),
    "collective in both branches": (
        "CD916",
        SETUP
        + """
comm = chainermn.create_communicator('naive')
if comm.rank == 0:
    data = chainermn.scatter_dataset(list(range(9)), comm)
else:
    data = chainermn.scatter_dataset(None, comm)
""",
    ),
    "conditional value, not conditional call": (
        "CD916",
        SETUP
        + """
comm = chainermn.create_communicator('naive')
data = list(range(9)) if comm.rank == 0 else None
data = chainermn.scatter_dataset(data, comm)
""",
    ),
    "a rank of something else": (
        "CD916",
        SETUP + "def f(card, comm):\n    if card.rank == 0:\n        comm.bcast_obj(1)\nf(1, 2)\n",
    ),
    "multi-node optimizer by another name": (
        "CD912",
        SETUP
        + """
from chainermn import create_multi_node_optimizer as wrap
comm = chainermn.create_communicator('naive')
opt = wrap(chainer.optimizers.Adam(), comm).setup(L.Linear(3, 2))
it = chainer.iterators.SerialIterator(chainermn.scatter_dataset([1], comm), 2)
updater = training.StandardUpdater(it, opt)
""",
    ),
    "only with --mpi are there several ranks, and then the optimizer is wrapped": (
        "CD912",
        SETUP
        + """
import argparse
p = argparse.ArgumentParser(); p.add_argument('--mpi', action='store_true'); args = p.parse_args()
opt = chainer.optimizers.Adam()
if args.mpi:
    comm = chainermn.create_communicator('naive')
    opt = chainermn.create_multi_node_optimizer(opt, comm)
opt.setup(L.Linear(3, 2))
updater = training.StandardUpdater(chainer.iterators.SerialIterator([1], 2), opt)
""",
    ),
    "repeat by a variable that is False": (
        "CD930",
        SETUP
        + "again = False\ntest = chainer.iterators.SerialIterator([1], 8, again)\n"
        + "training.extensions.Evaluator(test, L.Classifier(L.Linear(3)))\n",
    ),
    "float of the loss": (
        "CD945",
        SETUP
        + """
def train(model, opt, data):
    total = 0
    for x, t in data:
        loss = F.softmax_cross_entropy(model(x), t)
        model.cleargrads(); loss.backward(); opt.update()
        total += float(loss.array)
    return total
""",
    ),
    "the sum of two losses is what is differentiated": (
        "CD945",
        SETUP
        + """
def train(model, opt, data):
    for batch in data:
        loss = 0
        for x, t in batch:
            loss += F.softmax_cross_entropy(model(x), t)
        model.cleargrads(); loss.backward(); loss.unchain_backward(); opt.update()
""",
    ),
    "a start method before the communicator": (
        "CD917",
        """
import multiprocessing
import chainermn
def main():
    multiprocessing.set_start_method('forkserver')
    p = multiprocessing.Process(); p.start(); p.join()
    comm = chainermn.create_communicator('pure_nccl')
if __name__ == '__main__':
    main()
""",
    ),
    "old names for old versions": (
        "CD935",
        SETUP
        + """
if int(chainer.__version__.split('.')[0]) < 2:
    x = chainer.Variable([1], volatile='on')
""",
    ),
    "gradient accumulation clears elsewhere": (
        "CD929",
        SETUP
        + """
def clear(model):
    model.cleargrads()
def train(model, data):
    opt = chainer.optimizers.SGD().setup(model)
    for x in data:
        loss = model(x)
        loss.backward()
        opt.update()
        clear(model)
""",
    ),
}


@pytest.mark.parametrize("name", CLEAR_CASES)
def test_is_no_false_alarm(name: str, tmp_path: Path) -> None:
    code, text = CLEAR_CASES[name]
    assert code not in one(tmp_path, text)


def test_imports_are_followed_inside_a_package(tmp_path: Path) -> None:
    found = told(
        tmp_path,
        {
            "pkg/__init__.py": "",
            "pkg/mpi.py": "import chainermn\n\ndef start():\n    return chainermn.create_communicator('single_node')\n",
            "pkg/train.py": """
                import chainermn
                from .mpi import start
                from . import data as d

                comm = start()
                if comm.rank == 0:
                    d.share(comm)
                """,
            "pkg/data.py": "def share(comm):\n    comm.bcast_obj(1)\n",
        },
    )
    assert found["CD910"] == ["pkg/mpi.py:4"]
    assert found["CD916"] == ["pkg/data.py:2"]


def test_files_that_import_each_other_in_a_circle_end(tmp_path: Path) -> None:
    files = {
        "a.py": "import chainermn\nfrom b import make\ncomm = make('hierarchical')\n",
        "b.py": "import a\nimport chainermn\n\ndef make(name):\n    return chainermn.create_communicator(name)\n",
    }
    assert "CD910" in told(tmp_path, files)
