"""Chainer's own tests under compat, beside plain Chainer on Python 3.11 and NumPy 1.23.5 (``make test-chainer``).

``CHAINER_TESTS`` names a checkout of chainer at v7.8.1 (the source distribution holds no tests, and they are not
committed here)::

    git clone --branch v7.8.1 --depth 1 https://github.com/chainer/chainer /tmp/chainer
    CHAINER_TESTS=/tmp/chainer python -m tests.chainer_suite

For each Python an environment is made under ``.venv-chainer/`` and kept. The report gives the share of the cases that
pass on the baseline and pass under compat, and lists each that does not with its cause. Exit code 1: fewer than
99.5 %, or a failure without a known cause.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Tuple

from tests.chainer_suite.causes import cause_of

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
SELECTION = "not gpu and not cudnn and not multi_gpu and not slow and not ideep and not chainerx"
MUST_PASS = 0.995
#: The longest file takes 30 s; one that needs the network (MNIST) leaves a rank waiting for ever without it.
MPI_FILE_LIMIT_S = 120
_COMMON = ("filelock", "typing_extensions", "six", "h5py", "pillow", "mock", "hypothesis", "mpi4py", "mpich")


@dataclass(frozen=True)
class Environment:
    """One column of the comparison."""

    label: str
    python: str
    packages: Tuple[str, ...]
    compat: bool


ENVIRONMENTS = (
    Environment("3.11", "3.11", ("setuptools<74", "numpy==1.23.5", "scipy<1.12", "protobuf<4", "pytest<9"), False),
    Environment("3.12", "3.12", ("numpy==2.5.5", "scipy", "protobuf", "pytest"), True),
    Environment("3.13", "3.13", ("numpy==2.5.5", "scipy", "protobuf", "pytest"), True),
)


def main() -> int:
    """Run what was asked for and print the comparison."""
    parser = argparse.ArgumentParser(prog="python -m tests.chainer_suite", description=__doc__.split("\n")[0])
    parser.add_argument("--environments", type=Path, default=ROOT / ".venv-chainer", help="where environments are made")
    parser.add_argument("--results", type=Path, help="folder for results [default: that of the environments]")
    parser.add_argument("--only", action="append", choices=[e.label for e in ENVIRONMENTS], help="this Python only")
    parser.add_argument("--suite", action="append", choices=["chainer", "chainermn"], help="this suite only")
    parser.add_argument("--reuse", action="store_true", help="compare results that are there instead of running anew")
    asked = parser.parse_args()
    results = asked.results or asked.environments
    tests = _tests_folder()
    chosen = [e for e in ENVIRONMENTS if not asked.only or e.label in asked.only]
    failed = False
    for suite in asked.suite or ["chainer", "chainermn"]:
        outcomes = {}
        for environment in chosen:
            path = results / f"{suite}-{environment.label}.json"
            if not (asked.reuse and path.exists()):
                python = _python_of(environment, asked.environments)
                print(f"{suite} on {environment.label} ...", file=sys.stderr, flush=True)
                began = time.monotonic()
                run = _run_chainer if suite == "chainer" else _run_chainermn
                path.write_text(json.dumps(run(python, environment, tests, results)), encoding="utf-8")
                print(f"  took {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
            outcomes[environment.label] = json.loads(path.read_text(encoding="utf-8"))
        failed |= not _compare(suite, outcomes)
    return int(failed)


def _tests_folder() -> Path:
    given = os.environ.get("CHAINER_TESTS")
    if not given or not (Path(given) / "tests" / "chainer_tests").is_dir():
        print(
            "CHAINER_TESTS has to name a checkout of chainer v7.8.1 (the source distribution holds no tests): "
            "git clone --branch v7.8.1 --depth 1 https://github.com/chainer/chainer DIR",
            file=sys.stderr,
        )
        raise SystemExit(2)
    return Path(given).resolve() / "tests"


def _python_of(environment: Environment, folder: Path) -> Path:
    """The environment's Python; the environment is made if it is not there."""
    place = (folder / environment.label).resolve()
    python = place / "bin" / "python"
    if (place / "ready").exists():
        return python
    found = find_interpreter(environment.python)
    place.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([found, "-m", "venv", "--clear", str(place)], check=True)
    pins = place / "build-constraint.txt"
    pins.write_text("setuptools<74\n", encoding="utf-8")
    environ = {**os.environ, "PIP_CONSTRAINT": str(pins), "PIP_BUILD_CONSTRAINT": str(pins)}
    install = [str(python), "-m", "pip", "install", "-q"]
    subprocess.run([*install, "--upgrade", "pip>=23"], check=True, env=environ)
    subprocess.run([*install, "setuptools", "wheel", *environment.packages, *_COMMON], check=True, env=environ)
    subprocess.run([*install, "chainer==7.8.1", *environment.packages], check=True, env=environ)
    if environment.compat:
        # Worst case on purpose: no setuptools at all, as in a new virtual environment of that Python.
        subprocess.run([str(python), "-m", "pip", "uninstall", "-q", "-y", "setuptools"], check=True)
    (place / "ready").touch()
    return python


def find_interpreter(version: str) -> str:
    """A Python of that version that can make environments."""
    candidates = [
        shutil.which(f"python{version}"),
        *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python")),
    ]
    for candidate in candidates:
        if candidate and subprocess.run([candidate, "-c", "import ensurepip"], capture_output=True).returncode == 0:
            return candidate
    print(f"Python {version} is not found; make test-chainer needs 3.11, 3.12 and 3.13", file=sys.stderr)
    raise SystemExit(2)


def _environ(environment: Environment, result: Path) -> Dict[str, str]:
    environ = {**os.environ, "CHAINER_SUITE_RESULT": str(result)}
    paths = [str(HERE), str(ROOT)]
    environ.pop("CHAINER_SUITE_COMPAT", None)
    if environment.compat:
        environ["CHAINER_SUITE_COMPAT"] = "1"
        paths.insert(0, str(ROOT / "chainerdoctor" / "compat" / "children"))
    environ["PYTHONPATH"] = os.pathsep.join(paths)
    return environ


def _pytest(python: Path, target: str) -> List[str]:
    options = ["-c", str(HERE / "chainer_suite.ini"), "--rootdir", ".", "-p", "no:cacheprovider", "-q", "--tb=short"]
    return [str(python), "-m", "pytest", "-p", "recorder", *options, "-m", SELECTION, target]


def _run_chainer(python: Path, environment: Environment, tests: Path, results: Path) -> Dict[str, Dict[str, str]]:
    result = (results / f"chainer-{environment.label}.raw").resolve()
    with open(f"{result}.log", "w", encoding="utf-8") as log:
        subprocess.run(
            _pytest(python, "chainer_tests"), cwd=tests, env=_environ(environment, result), stdout=log, stderr=log
        )
    cases: Dict[str, Dict[str, str]] = json.loads(result.read_text(encoding="utf-8"))["cases"]
    return cases


def _run_chainermn(python: Path, environment: Environment, tests: Path, results: Path) -> Dict[str, Dict[str, str]]:
    """On two ranks, file by file: a rank that fails alone leaves the other waiting, and that file is then ended."""
    cases: Dict[str, Dict[str, str]] = {}
    mpiexec = python.parent / "mpiexec"
    for file in sorted((tests / "chainermn_tests").rglob("test_*.py")):
        name = str(file.relative_to(tests))
        result = (results / f"chainermn-{environment.label}.raw").resolve()
        shards = [Path(f"{result}.{rank}") for rank in range(2)]
        for shard in shards:
            shard.unlink(missing_ok=True)
        with open(f"{result}.log", "a", encoding="utf-8") as log:
            ended = _within(
                [str(mpiexec), "-n", "2", *_pytest(python, name)], tests, _environ(environment, result), log
            )
        seen = [json.loads(s.read_text(encoding="utf-8"))["cases"] for s in shards if s.exists()]
        if not ended or len(seen) < 2:
            cases[f"{name}::(file)"] = {"outcome": "failed", "error": "hung or died: no result from both ranks"}
        for case in sorted({key for shard in seen for key in shard}):
            # A case passes if it passes on both ranks.
            worst = max((shard.get(case, {"outcome": "absent"}) for shard in seen), key=lambda e: _ORDER[e["outcome"]])
            cases[case] = worst
    return cases


_ORDER = {"skipped": 0, "passed": 1, "absent": 2, "failed": 3}


def _within(command: List[str], folder: Path, environ: Dict[str, str], log: object) -> bool:
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=log, stderr=log, start_new_session=True)  # type: ignore[call-overload]
    try:
        process.wait(MPI_FILE_LIMIT_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return False
    return True


def _compare(suite: str, outcomes: Dict[str, Dict[str, Dict[str, str]]]) -> bool:
    """Print the comparison; whether it holds."""
    for label, cases in outcomes.items():
        counted = Counter(case["outcome"] for case in cases.values())
        print(f"{suite} {label}: " + ", ".join(f"{counted[word]} {word}" for word in ("passed", "failed", "skipped")))
    baseline = outcomes.get("3.11")
    if baseline is None:
        return True
    for name, case in sorted(baseline.items()):
        if case["outcome"] == "failed":
            print(f"  fails on the baseline: {name}: {_first_line(case)}")
    wanted = [name for name, case in baseline.items() if case["outcome"] == "passed"]
    holds = True
    for label, cases in outcomes.items():
        if label == "3.11":
            continue
        lost = [name for name in wanted if cases.get(name, {"outcome": "absent"})["outcome"] != "passed"]
        share = 1 - len(lost) / len(wanted)
        print(f"{suite} {label}: {len(wanted) - len(lost)} of {len(wanted)} = {share:.2%} (wanted: {MUST_PASS:.1%})")
        unexplained = 0
        for name in lost:
            cause = cause_of(name, cases.get(name, {}).get("error", ""))
            unexplained += cause is None
            print(f"  {name}: {cause.cause if cause else 'UNEXPLAINED: ' + _first_line(cases.get(name))}")
        holds &= share >= MUST_PASS and not unexplained
    return holds


def _first_line(case: Optional[Dict[str, str]]) -> str:
    if case is None:
        return "not collected"
    lines = [line for line in case.get("error", case["outcome"]).splitlines() if line.strip()]
    return lines[-1][:160] if lines else ""


if __name__ == "__main__":
    sys.exit(main())
