"""A network with convolutions trains under compat on simulated GPUs, with the unmodified CuPy 12.3 wheel.

Runs in an environment with CuPy 12.3 (``pip install chainer cupy-cuda12x==12.3.0 numpy==1.26.4`` on Python 3.12).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from chainerdoctor.compat.patches import version_of

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(version_of("cupy-cuda12x")[:2] != (12, 3), reason="this environment has no CuPy 12.3")


def test_convolutions_train_on_a_simulated_gpu(tmp_path: Path) -> None:
    pytest.importorskip("chainerdoctor.simulate", reason="the simulated CUDA is not in this tree")
    (tmp_path / "machine.scn").write_text("gpus = 1\n")
    doctor = [sys.executable, "-m", "chainerdoctor"]
    script = str(ROOT / "fixtures" / "scripts" / "healthy_cnn.py")
    done = subprocess.run(
        [*doctor[:2], "chainerdoctor.simulate", "machine.scn", "--"]
        + [*doctor, "run", "--compat", script, "--device", "@cupy:0"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    losses = [float(line.split()[1]) for line in done.stdout.splitlines()]
    wanted = json.loads((ROOT / "fixtures" / "scripts" / "healthy_losses.json").read_text())["losses"]["healthy_cnn.py"]
    # Another order of summation than NumPy's: float32 rounding grows over the 50 iterations.
    assert losses == pytest.approx(wanted, rel=1e-4)
