"""What the README shows is what the product prints, and the commands that it names exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_parts_are_current() -> None:
    done = subprocess.run([sys.executable, str(ROOT / "tests" / "generated_readme.py")], cwd=ROOT)
    assert done.returncode == 0, "run make readme"


@pytest.mark.parametrize("command", sorted(set(re.findall(r"chainerdoctor ([a-z]+(?:-[a-z]+)*)", README))))
def test_commands_exist(command: str) -> None:
    from chainerdoctor.cli import main

    assert command in main.list_commands(None) or command in {"has", "itself"}


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`make ([a-z-]+)", README)) | set(re.findall(r"\$ make ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_new_rule_makes_a_working_rule(tmp_path: Path) -> None:
    """The newcomer's path, followed literally in a copy of the project."""
    import shutil

    for name in ("chainerdoctor", "tests", "fixtures", "pyproject.toml"):
        source, target = ROOT / name, tmp_path / name
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, ignore=ignore) if source.is_dir() else shutil.copy(source, target)
    made = [sys.executable, "tests/new_rule.py", "CD299", "gpu_is_green"]
    assert subprocess.run(made, cwd=tmp_path, capture_output=True).returncode == 0
    again = subprocess.run(made, cwd=tmp_path, capture_output=True, text=True)
    assert again.returncode == 2
    assert "CD299 is taken" in again.stderr
    for extra in (["--bless"], []):
        tests = [sys.executable, "-m", "pytest", "-q", "tests/rules", "-k", "CD299", *extra]
        done = subprocess.run(tests, cwd=tmp_path, capture_output=True, text=True, env={"PYTHONPATH": str(tmp_path)})
        assert done.returncode == 0, done.stdout
    assert (tmp_path / "fixtures" / "rules" / "CD299" / "found.json.golden").exists()
    bad = subprocess.run([sys.executable, "tests/new_rule.py", "X1", "y"], cwd=tmp_path, capture_output=True, text=True)
    assert (bad.returncode, bad.stderr[:6]) == (2, "usage:")
