"""On a real GPU: Chainer under compat with whatever CuPy is here (13.6 and 14.2 are what it is made for)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Tuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.gpu


def _run(*command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_chainer_sees_the_gpu(tmp_path: Path) -> None:
    code = (
        "import chainerdoctor.compat, cupy; from chainer.backends import cuda; "
        "print(cupy.__version__, cuda.available, cuda.cupy.arange(3).sum())"
    )
    version, available, total = _run("-c", code, folder=tmp_path).split()
    print("CuPy", version)
    assert (available, total) == ("True", "3")


@pytest.mark.parametrize("iterations", [50])
def test_convolutions_train_as_on_the_cpu(iterations: int, tmp_path: Path) -> None:
    script = ROOT / "fixtures" / "scripts" / "healthy_cnn.py"
    losses = _losses(
        _run("-m", "chainerdoctor", "run", "--compat", str(script), "--device", "@cupy:0", folder=tmp_path)
    )
    wanted = json.loads((script.parent / "healthy_losses.json").read_text())["losses"]["healthy_cnn.py"]
    assert len(losses) == iterations
    # Convolutions on a GPU may run in TF32 (10 bits): the course of the training is compared, not its last digits.
    assert losses == pytest.approx(wanted, rel=0.05)
    assert losses[-1] < 0.8 * losses[0]


def _losses(out: str) -> Tuple[float, ...]:
    return tuple(float(line.split()[1]) for line in out.splitlines())
