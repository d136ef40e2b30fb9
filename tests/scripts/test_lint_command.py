"""``chainerdoctor lint`` as people type it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from chainerdoctor.cli import main

ROOT = Path(__file__).resolve().parent.parent.parent
SICK = "import chainermn\ncomm = chainermn.create_communicator('hierarchical')\n"
CLEAN = "import chainermn\ncomm = chainermn.create_communicator('pure_nccl')\n"


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SICK)
    return path


def lint(*arguments: object):
    return CliRunner().invoke(main, ["lint", *map(str, arguments)], prog_name="chainerdoctor")


def test_a_sick_script_is_one_finding_with_its_place_and_exit_1(script: Path) -> None:
    done = lint(script, "--select", "CD910")
    assert done.exit_code == 1
    assert f"{script}:2" in done.output.replace("\n", "")
    assert "pure_nccl" in done.output


def test_a_clean_script_is_exit_0(script: Path) -> None:
    script.write_text(CLEAN)
    done = lint(script)
    assert done.exit_code == 0, done.output


def test_the_script_is_never_run(script: Path, tmp_path: Path) -> None:
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nraise SystemExit(7)\n")
    assert lint(script).exit_code == 0
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("comment", "silent"),
    [
        ("# chainerdoctor: ignore[CD910]", True),
        ("# chainerdoctor: ignore", True),
        ("# noqa  # chainerdoctor:ignore[CD912, cd91]", True),
        ("# chainerdoctor: ignore[CD912]", False),
        ("# chainerdoctor", False),
    ],
)
def test_a_comment_silences_its_own_line_only(comment: str, silent: bool, script: Path) -> None:
    script.write_text(SICK.rstrip("\n") + f"  {comment}\n" + "other = chainermn.create_communicator('single_node')\n")
    done = lint(script, "--select", "CD910", "--format", "json")
    (verdict,) = json.loads(done.output)["verdicts"]
    lines = [finding["where"].rsplit(":", 1)[1] for finding in verdict["findings"]]
    assert lines == (["3"] if silent else ["2", "3"])


def test_silence_is_counted(script: Path) -> None:
    script.write_text(SICK.rstrip("\n") + "  # chainerdoctor: ignore[CD910]\n")
    done = lint(script, "--select", "CD910")
    assert done.exit_code == 0
    assert "1 finding silenced" in done.output


def test_a_file_that_cannot_be_read_is_never_an_all_clear(script: Path) -> None:
    (script.parent / "broken.py").write_text("def f(:\n")
    script.write_text(CLEAN)
    done = lint(script.parent, "--fail-on", "error")
    assert done.exit_code == 3, done.output
    assert "broken.py" in done.output


def test_show_fixes_prints_the_example(script: Path) -> None:
    assert "Example" not in lint(script, "--select", "CD910").output
    done = lint(script, "--select", "CD910", "--show-fixes")
    assert "create_communicator('pure_nccl')" in done.output.replace('"', "'")


def test_sarif_points_at_line_and_column(script: Path) -> None:
    done = lint(script, "--select", "CD910", "--format", "sarif")
    (result,) = json.loads(done.output)["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    # The call begins in the eighth column of "comm = chainermn.create_communicator(…)".
    assert (region["startLine"], region["startColumn"]) == (2, 8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["/nonexistent.py"], "no such file"),
        ([], "Missing argument"),
        (["--select", "CD5", "x.py"], "no rule"),
    ],
)
def test_wrong_use_is_one_line_and_exit_2(arguments: list, words: str) -> None:
    done = lint(*arguments)
    assert done.exit_code == 2
    assert words in done.output
    assert "Traceback" not in done.output


def test_the_pre_commit_hook_runs_as_it_is_written(script: Path) -> None:
    """The hook's entry and arguments, with the files that pre-commit would add."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    (entry,) = re.findall(r"^\s*entry: chainerdoctor (.+)$", text, re.MULTILINE)
    done = subprocess.run(
        [sys.executable, "-m", "chainerdoctor", *entry.split(), str(script)], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 1, done.stderr
    assert "CD910" in done.stdout
