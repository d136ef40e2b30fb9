"""Simulated machines for tests: a scenario's text becomes a child process's environment."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from chainerdoctor.simulate import environment

ROOT = Path(__file__).resolve().parents[2]
SCENARIOS = ROOT / "fixtures" / "scenarios"


class Machine:
    """A scenario on disk and its environment; ``python`` runs code there and returns what it prints as JSON."""

    def __init__(self, folder, text, libraries):
        self.path = folder / "machine.scn"
        self.path.write_text(textwrap.dedent(text))
        self.shared = folder / "shared"
        self.shared.mkdir(exist_ok=True)
        self.variables = environment(self.path, libraries, shared=self.shared)

    def environ(self, **more):
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
        return {**os.environ, **self.variables, "PYTHONPATH": path, **more}

    def run(self, *command, timeout=120, **more):
        return subprocess.run(
            command,
            env=self.environ(**more),
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def python(self, code, *arguments, timeout=120, **more):
        done = self.run(sys.executable, "-c", textwrap.dedent(code), *arguments, timeout=timeout, **more)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def machine(tmp_path):
    """machine(text, libraries=("nvml",)) -> Machine."""

    def make(text, libraries=("nvml",)):
        return Machine(tmp_path, text, libraries)

    return make
