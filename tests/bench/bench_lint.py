"""lint on training scripts of 300 lines, beside pyflakes and ruff on the same files in the same run.

The files are this project's own rule fixtures joined to 300 lines each, every file with names of its own, so that no
two are alike.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any, Dict

from tests.bench.interleaved import command, paired

FILES = 300
LINES = 300
RUNS = 7
FIXTURES = Path(__file__).resolve().parent.parent.parent / "fixtures" / "rules"


def write_scripts(folder: Path) -> int:
    """Write the files; gives the number of lines in all."""
    parts = [p.read_text() for p in sorted(FIXTURES.glob("CD9[1-4]*/*.py")) if "from __future__" not in p.read_text()]
    total = 0
    for number in range(FILES):
        lines: list = []
        while len(lines) < LINES:
            part = parts[(number * 7 + len(lines)) % len(parts)]
            lines += part.replace("model", f"model_{number}").replace("train", f"train_{number}").splitlines()
        (folder / f"script_{number}.py").write_text("\n".join(lines) + "\n")
        total += len(lines)
    return total


def measure() -> Dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = write_scripts(folder)
        files = lines / LINES  # counted as files of 300 lines
        # One core each: ruff would take all of them.
        pinned = ["taskset", "-c", "0"]
        ours = command([*pinned, sys.executable, "-m", "chainerdoctor", "lint", name, "--format", "json"])
        pyflakes = command([*pinned, sys.executable, "-m", "pyflakes", name])
        ruff = command([*pinned, "ruff", "check", "--isolated", "--no-cache", "--select", "F", name])
        against_pyflakes = paired(ours, pyflakes, RUNS)
        against_ruff = paired(ours, ruff, RUNS)
    speed = files / against_pyflakes["ours_s"]
    return {
        f"lint, {FILES} scripts of {LINES} lines, against pyflakes": {
            **against_pyflakes,
            "files_per_s": speed,
            "bar": f"≥ 150 files/s of 300 lines: {speed:.0f}/s",
        },
        f"lint, {FILES} scripts of {LINES} lines, against ruff": {**against_ruff, "bar": "no bar"},
    }
