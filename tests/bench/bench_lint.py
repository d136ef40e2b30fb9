"""lint on training scripts of 300 lines, beside pyflakes and ruff on the same files in the same run.

Each file is rule fixtures (training code, with and without faults) and ordinary Python from this project's own modules,
in the share that Chainer's own examples have: a watched call in every four lines. No two files are alike.
"""

import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, Iterable, List

from tests.bench.interleaved import command, paired

FILES = 300
LINES = 300
RUNS = 7
ROOT = Path(__file__).resolve().parent.parent.parent
FIXTURES = ROOT / "fixtures" / "rules"
PACKAGE = ROOT / "chainerdoctor"


def write_scripts(folder: Path) -> int:
    """Write the files; gives the number of lines in all."""
    training = _texts(FIXTURES.glob("CD9[1-4]*/*.py"))
    ordinary = [text for text in _texts(PACKAGE.rglob("*.py")) if 20 < text.count("\n") < 150]
    total = 0
    for number in range(FILES):
        lines: List[str] = []
        turn = number
        while len(lines) < LINES:
            pool = training if turn % 4 else ordinary
            part = pool[(number * 7 + turn * 13) % len(pool)]
            lines += part.replace("model", f"model_{number}").replace("train", f"train_{number}").splitlines()
            turn += 1
        (folder / f"script_{number}.py").write_text("\n".join(lines) + "\n")
        total += len(lines)
    return total


def _texts(paths: Iterable[Path]) -> List[str]:
    texts = (path.read_text(encoding="utf-8") for path in sorted(paths))
    return [text.replace("from __future__ import annotations\n", "") for text in texts if "not valid" not in text]


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
