"""Building the libraries: once, safely, and with one clear line where it cannot be done."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from chainerdoctor.simulate import SimulationUnavailable, environment
from chainerdoctor.simulate.build import LIBRARIES, build

ROOT = Path(__file__).resolve().parents[2]
BUILD = "from chainerdoctor.simulate.build import *; print(build(LIBRARIES['nvml'][0]))"


def test_many_processes_build_at_once(tmp_path):
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def one(_):
        return subprocess.run([sys.executable, "-c", BUILD], env=environ, stdout=subprocess.PIPE, check=True).stdout

    with ThreadPoolExecutor(8) as pool:
        places = set(pool.map(one, range(8)))
    assert len(places) == 1
    left = sorted(path.name for path in (tmp_path / "chainerdoctor" / "simulate").iterdir())
    assert len(left) == 2, left  # the library's directory and its lock


def test_a_finished_library_is_not_built_again(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = build(LIBRARIES["nvml"][0])
    stamp = os.stat(first / "libnvidia-ml.so.1").st_mtime_ns
    assert build(LIBRARIES["nvml"][0]) == first
    assert os.stat(first / "libnvidia-ml.so.1").st_mtime_ns == stamp


def test_no_compiler_is_one_clear_line(tmp_path, monkeypatch):
    scenario = tmp_path / "m.scn"
    scenario.write_text("gpus = 1\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(
        SimulationUnavailable, match="^simulated GPUs need a compiler and no-such-compiler is not there: install gcc$"
    ):
        environment(scenario, ("nvml",))


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "chainerdoctor").write_text("a file where the directory would be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(SimulationUnavailable, match="cannot keep built libraries"):
        build(LIBRARIES["nvml"][0])


def test_the_command_line(tmp_path):
    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "chainerdoctor.simulate", *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        )  # fmt: skip

    good, bad = tmp_path / "good.scn", tmp_path / "bad.scn"
    good.write_text("gpus = 1\n")
    bad.write_text("gpus = many\n")
    count = "import pynvml; pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetCount())"
    assert run(str(good), "--libraries", "nvml", "--", sys.executable, "-c", count).stdout == "1\n"
    assert run(str(good), "--libraries", "nvml", "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    wrong = run(str(bad), "--", "true")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        f"chainerdoctor.simulate: {bad}:1: gpus = many: not a number from 0 to 64\n",
    )
    assert run(str(good), "--libraries", "nvml", "--", "no-such-program").returncode == 2
    assert "temperature_slowdown" in run("--keys").stdout
