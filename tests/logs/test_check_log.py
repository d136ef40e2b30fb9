"""The command, as it is called."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LOGS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "logs"


def run(*arguments, stdin=b"", width="80"):
    environ = {**os.environ, "COLUMNS": width, "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "chainerdoctor", "check-log", *map(str, arguments)],
        input=stdin,
        capture_output=True,
        env=environ,
        timeout=120,
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def codes_of(text):
    return {v["code"] for v in json.loads(text)["verdicts"] if v["status"] == "found"}


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["nccl-2.10.log"], 0),
        (["kernel-dmesg-T.log"], 1),
        (["nothing-known.txt"], 3),
        (["nccl-2.10.log", "nothing-known.txt"], 3),
        (["kernel-dmesg-T.log", "nothing-known.txt"], 1),
    ],
)
def test_exit_codes(names, wanted):
    code, out, err = run(*[LOGS / name for name in names])
    assert code == wanted, out + err


@pytest.mark.parametrize("arguments", [[], ["/nonexistent.log"], ["--utc-offset", "x", "a"], [str(LOGS)]])
def test_wrong_usage_is_one_clear_line(arguments):
    code, _, err = run(*arguments)
    assert code == 2
    assert err.strip().splitlines()[-1].startswith("Error: ")
    assert "Traceback" not in err


def test_warnings_fail_when_asked_to():
    path = LOGS / "kernel-dmesg-raw.log"
    assert run(path)[0] == 0
    assert run(path, "--fail-on", "warning")[0] == 1


def test_standard_input_and_gzip_give_the_same(tmp_path):
    data = (LOGS / "kernel-dmesg-T.log").read_bytes()
    code, out, _ = run("-", "--format", "json", stdin=data)
    assert code == 1
    assert codes_of(out) == {"CD261"}
    packed = tmp_path / "dmesg.gz"
    packed.write_bytes(gzip.compress(data))
    assert codes_of(run(packed, "--format", "json")[1]) == {"CD261"}
    assert codes_of(run("-", "--format", "json", stdin=gzip.compress(data))[1]) == {"CD261"}


def test_a_finding_carries_path_line_and_the_quoted_line():
    path = LOGS / "kernel-dmesg-T.log"
    report = json.loads(run(path, "--format", "json")[1])
    (finding,) = [f for v in report["verdicts"] for f in v["findings"]]
    assert finding["location"] == {"path": str(path), "line": 2, "column": 0}
    assert "GPU has fallen off the bus" in finding["evidence"][0]["seen"]


def test_a_saved_snapshot_is_judged_alike(tmp_path):
    saved = tmp_path / "s.json"
    _, out, _ = run(LOGS / "nccl-2.29-function-trace.log", "--save", saved, "--format", "json")
    from chainerdoctor import snapshot as snapshots
    from chainerdoctor.judging import judge
    from chainerdoctor.logs.gather import log_rules

    again = {v.code for v in judge(snapshots.load(str(saved)), log_rules()) if v.findings}
    assert again == codes_of(out)
    assert "CD362" in again


def test_topology_is_printed_and_written(tmp_path):
    svg = tmp_path / "t.svg"
    assert "[gpu-a]" in run(LOGS / "nccl-2.10.log", "--topology", "-")[1]
    run(LOGS / "nccl-2.10.log", "--topology", svg)
    assert svg.read_text().startswith("<svg")


def test_help_has_examples():
    code, out, _ = run("--help")
    assert code == 0
    assert "Examples:" in out


@pytest.mark.parametrize("width", ["80", "40"])
def test_output_of_a_pipe_has_no_colour(width):
    _, out, _ = run(LOGS / "smi-table-550.log", width=width)
    assert "\x1b" not in out
