"""The commands as a user types them: help, wrong input, exit codes, files, pipes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from chainerdoctor.cli import main

FIXTURES = Path(__file__).resolve().parent.parent.parent / "fixtures"
SICK = str(FIXTURES / "rules" / "CD521" / "found.json")
CLEAR = str(FIXTURES / "rules" / "CD521" / "clear.json")


def run(*arguments: str):
    return CliRunner().invoke(main, list(arguments), prog_name="chainerdoctor")


def names() -> list:
    return main.list_commands(None)


def test_all_commands_of_this_issue_are_there() -> None:
    assert {"check-cluster", "snapshot", "judge", "diff", "explain", "rules", "schema"} <= set(names())


@pytest.mark.parametrize("name", names())
def test_every_command_has_help_with_examples(name: str) -> None:
    done = run(name, "--help")
    assert done.exit_code == 0
    assert f"chainerdoctor {name}" in done.output.split("Example")[1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chek-cluster"], "Did you mean 'check-cluster'?"),
        (["check-cluster", "-n", "0"], "at least one rank"),
        (["check-cluster", "-n", "x"], "not a valid integer"),
        (["check-cluster", "--hosts", "a,,b"], "--hosts, entry 2"),
        (["check-cluster", "--hosts", "a:2", "-n", "3", "--launcher", "ssh"], "3 ranks were asked for"),
        (["check-cluster", "--hosts", "a", "--launcher", "local"], "this machine only"),
        (["check-cluster", "--launcher", "ssh"], "needs --hosts or --hostfile"),
        (["check-cluster", "--launcher", "slurm"], "srun is not found"),
        (["check-cluster", "--hostfile", "/nonexistent"], "does not exist"),
        (["check-cluster", "--from", "/nonexistent.json"], "/nonexistent.json: No such file"),
        (["check-cluster", "--baseline", "/nonexistent.json"], "/nonexistent.json: No such file"),
        (["check-cluster", "stray.json"], "did you mean --from stray.json"),
        (["check-cluster", "--timeout", "0"], "not in the range"),
        (["judge", SICK, "--select", "nonsense"], "not the start of a rule's code"),
        (["judge", SICK, "--select", "CD99"], "no rule"),
        (["judge"], "Missing argument"),
        (["judge", __file__], "not valid JSON, or cut off"),
        (["explain", "CD999"], "there is no rule CD999"),
        (["rules", "XX"], "no rule's code starts with XX"),
        (["diff", SICK, "/nonexistent"], "No such file"),
        (["judge", SICK, "--format", "pdf"], "'pdf' is not one of"),
    ],
)
def test_wrong_input_gets_one_clear_line_and_exit_2(arguments, words, monkeypatch) -> None:
    monkeypatch.setenv("PATH", os.path.dirname(sys.executable))
    done = run(*arguments)
    assert done.exit_code == 2, done.output
    error = [line for line in done.output.splitlines() if line.startswith("Error:")]
    assert len(error) == 1
    assert words in error[0]
    assert "Traceback" not in done.output


def test_hostfile_with_junk_names_the_line(tmp_path) -> None:
    path = tmp_path / "hosts"
    path.write_bytes(b"node1 slots=4\n\xff\xfe\x00junk\n")
    done = run("check-cluster", "--hostfile", str(path))
    assert done.exit_code == 2
    assert "line 2" in done.output


@pytest.mark.parametrize(("path", "code"), [(SICK, 1), (CLEAR, 0)])
def test_exit_codes(path: str, code: int) -> None:
    assert run("judge", path, "--select", "CD521").exit_code == code


def test_fail_on_moves_the_threshold() -> None:
    warning = str(FIXTURES / "rules" / "CD520" / "found.json")
    assert run("judge", warning, "--select", "CD520").exit_code == 0
    assert run("judge", warning, "--select", "CD520", "--fail-on", "warning").exit_code == 1


def test_from_gives_the_same_verdicts_as_judge() -> None:
    first = json.loads(run("judge", SICK, "--format", "json").output)["verdicts"]
    second = json.loads(run("check-cluster", "--from", SICK, "--format", "json").output)["verdicts"]
    assert first == second


def test_from_takes_several_files() -> None:
    done = run("check-cluster", "--from", SICK, CLEAR, "--format", "json", "--select", "CD521")
    assert done.exit_code == 1


def test_diff_names_what_differs() -> None:
    done = run("diff", CLEAR, SICK)
    assert done.exit_code == 1
    assert "package chainer: 7.0.0 (wanted: 7.8.1)" in done.output
    assert run("diff", CLEAR, CLEAR).exit_code == 0


def test_output_file_is_whole_and_standard_output_empty(tmp_path) -> None:
    path = tmp_path / "report.json"
    done = run("judge", SICK, "--format", "json", "-o", str(path))
    assert done.output == ""
    assert json.loads(path.read_text())["verdicts"]
    assert [p.name for p in tmp_path.iterdir()] == ["report.json"]


def test_output_that_cannot_be_written_is_exit_3(tmp_path) -> None:
    done = run("judge", CLEAR, "-o", str(tmp_path / "none" / "report.json"))
    assert done.exit_code == 3
    assert "cannot write" in done.output


def test_settings_file_and_command_line_wins(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    warning = str(FIXTURES / "rules" / "CD520" / "found.json")
    (tmp_path / "chainerdoctor.toml").write_text('fail-on = "warning"\n[judge]\nselect = ["CD520"]\n')
    assert run("judge", warning).exit_code == 1
    assert run("judge", warning, "--fail-on", "error").exit_code == 0
    (tmp_path / "chainerdoctor.toml").unlink()
    (tmp_path / "pyproject.toml").write_text('[tool.chainerdoctor]\nfail-on = "warning"\n')
    assert run("judge", warning, "--select", "CD520").exit_code == 1


def test_broken_settings_file_is_a_clear_line(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chainerdoctor.toml").write_text("select = [\n")
    done = run("judge", SICK)
    assert done.exit_code == 2
    assert "not valid TOML" in done.output


def test_unknown_setting_names_the_nearest(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "chainerdoctor.toml").write_text('[judge]\nfail-onn = "warning"\n')
    done = run("judge", SICK)
    assert done.exit_code == 2
    assert "fail-onn" in done.output
    assert "fail-on" in done.output.replace("fail-onn", "")


def test_explain_by_code_and_by_name() -> None:
    assert run("explain", "cd501").output == run("explain", "chainer-missing").output
    assert "Why it hurts" in run("explain", "CD501").output


def test_rules_in_every_form() -> None:
    listed = json.loads(run("rules", "--format", "json").output)
    assert len(listed) == run("rules").output.count("\n")
    assert run("rules", "CD5", "--format", "markdown").output.count("| CD5") > 10


def test_closed_pipe_is_no_traceback() -> None:
    code = f"{sys.executable} -m chainerdoctor rules | head -n 1"
    done = subprocess.run(code, shell=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith("CD0")


@pytest.mark.parametrize("environ", [{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"NO_COLOR": "1"}])
def test_plain_terminals(environ) -> None:
    clean = {k: v for k, v in os.environ.items() if k != "HOME"}
    command = [sys.executable, "-m", "chainerdoctor", "judge", SICK]
    done = subprocess.run(command, env={**clean, **environ}, capture_output=True)
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"\x1b" not in done.stdout


def test_package_alone_reports_what_is_missing(tmp_path) -> None:
    """No Chainer, CuPy, MPI or GPU: an environment with only the runtime packages gives findings, no traceback."""
    import importlib.util
    import venv

    venv.create(tmp_path / "env", with_pip=False)
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    runtime = [
        "click",
        "rich",
        "packaging",
        "pygments",
        "markdown_it",
        "mdurl",
        "typing_extensions",
        "tomli",
        "colorama",
    ]
    for name in [*runtime, "chainerdoctor"]:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin is not None:
            origin = Path(spec.origin)
            source = origin.parent if spec.submodule_search_locations else origin
            (site / source.name).symlink_to(source)
    command = [str(tmp_path / "env" / "bin" / "python"), "-m", "chainerdoctor", "check-cluster", "-n", "2"]
    environ = {"PATH": "/nonexistent", "HOME": str(tmp_path)}
    done = subprocess.run([*command, "--format", "json"], env=environ, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    verdicts = {v["code"]: v for v in json.loads(done.stdout)["verdicts"]}
    found = {code for code, verdict in verdicts.items() if verdict["status"] == "found"}
    # On newer Pythons that Chainer does not know this one is said as well.
    assert found == {"CD501", "CD407"} | ({"CD512"} if sys.version_info >= (3, 12) else set())
    assert "chainer==7.8.1" in verdicts["CD501"]["findings"][0]["remedy"]
    assert done.stderr == ""
