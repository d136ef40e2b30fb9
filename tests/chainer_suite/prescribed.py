"""Install sets that ``chainerdoctor prescribe`` names, with the very command that it prints, and train in them.

    python -m tests.chainer_suite.prescribed [--keep FOLDER]

Needs a package index; each set takes a minute or two. A set holds if its command succeeds, its pins are what is
installed, and a small network trains. A GPU is not needed: what Chainer says about CuPy without a driver is printed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import List, Tuple

from chainerdoctor.prescribe import Machine, prescribe
from chainerdoctor.tables.working_stacks import Stack
from tests.chainer_suite.__main__ import ROOT, find_interpreter

MACHINES: Tuple[Machine, ...] = (
    Machine((3, 11)),
    Machine((3, 11), cuda="12.4"),
    Machine((3, 8), driver="525.60.13"),
    Machine((3, 9), cuda="11.8"),
    Machine((3, 12), cuda="10.2"),
    Machine((3, 13), cuda="12.9"),
    Machine((3, 13), cuda="13.0"),
)

_LOOK = """
import chainer, chainermn, numpy
from chainer.backends import cuda
print("Chainer", chainer.__version__, "NumPy", numpy.__version__, "GPU code", cuda.available, "cuDNN", cuda.cudnn_enabled)
if not cuda.available:
    print("  because", str(cuda._resolution_error).strip().splitlines()[0] if hasattr(cuda, "_resolution_error") else "?")
"""


def main() -> int:
    """Install each set in turn."""
    parser = argparse.ArgumentParser(prog="python -m tests.chainer_suite.prescribed")
    parser.add_argument("--keep", type=Path, help="folder for the environments, which are then kept")
    parser.add_argument("--only", type=int, action="append", help="number of the set, from 0")
    asked = parser.parse_args()
    failed = 0
    for number, machine in enumerate(MACHINES):
        if asked.only and number not in asked.only:
            continue
        stack = prescribe(machine)
        place = Path(tempfile.mkdtemp(prefix="chainerdoctor-set-", dir=asked.keep))
        try:
            complaints = _try(stack, place)
        finally:
            if asked.keep is None:
                shutil.rmtree(place)
        print(f"{'FAILS' if complaints else 'works'}: {stack.title}", flush=True)
        for line in complaints:
            print("  " + line)
        failed += bool(complaints)
    return int(failed > 0)


def _try(stack: Stack, place: Path) -> List[str]:
    python = f"python{stack.python[0]}.{stack.python[1]}"
    subprocess.run([find_interpreter(python[6:]), "-m", "venv", str(place / "env")], check=True)
    binaries = place / "env" / "bin"
    environ = {**os.environ, "PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "PIP_QUIET": "1"}
    environ.pop("PYTHONPATH", None)
    installed = subprocess.run(stack.pip_command, shell=True, cwd=place, env=environ, capture_output=True, text=True)
    if installed.returncode:
        return ["the command fails: " + "\n".join(installed.stderr.strip().splitlines()[-5:])]
    complaints = []
    for requirement in stack.requirements:
        name, _, version = requirement.partition("==")
        if version and version != _installed(binaries / "python", name):
            complaints.append(f"{name} is {_installed(binaries / 'python', name)}, not {version}")
    # As the set's notes say: NVIDIA's wheels are where the linker does not look.
    libraries = [str(folder) for folder in sorted((place / "env").glob("lib/python3*/site-packages/nvidia/*/lib"))]
    environ["LD_LIBRARY_PATH"] = os.pathsep.join([*libraries, os.environ.get("LD_LIBRARY_PATH", "")])
    if stack.compat:
        environ["PYTHONPATH"] = str(ROOT / "chainerdoctor" / "compat" / "children")
    for what in (["-c", _LOOK], [str(ROOT / "fixtures" / "scripts" / "healthy_cnn.py"), "--iterations", "3"]):
        done = subprocess.run([str(binaries / "python"), *what], cwd=place, env=environ, capture_output=True, text=True)
        if done.returncode:
            complaints.append(done.stderr.strip().splitlines()[-1])
        elif what[0] == "-c":
            print(done.stdout.strip())
    return complaints


def _installed(python: Path, name: str) -> str:
    code = f"from importlib import metadata; print(metadata.version({name!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
