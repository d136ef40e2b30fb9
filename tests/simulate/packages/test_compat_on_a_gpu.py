"""A network with convolutions trains under compat on simulated GPUs, with the unmodified CuPy 12.3 wheel.

Runs in the environment "compat" of environments.sh: Python 3.12, NumPy 1.26.4.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def test_convolutions_train_on_a_simulated_gpu(programs, tmp_path: Path) -> None:
    (tmp_path / "machine.scn").write_text("gpus = 1\n")
    doctor = [programs("python", "compat"), "-m", "chainerdoctor"]
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
