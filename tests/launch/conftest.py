"""The two environments with an MPI each, and a way to put faults into agents without touching the product."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, Optional, Set

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


def openmpi_python() -> str:
    path = os.environ.get("CHAINERDOCTOR_OPENMPI_PYTHON", str(ROOT / ".venv-openmpi" / "bin" / "python"))
    if not os.path.exists(path):
        pytest.fail(f"{path} is not there; run: make venv-test")
    return path


@pytest.fixture(params=["mpich", "openmpi"])
def mpi_python(request: pytest.FixtureRequest) -> str:
    """The interpreter of an environment whose bin/mpiexec is MPICH's or Open MPI's."""
    return sys.executable if request.param == "mpich" else openmpi_python()


#: Loaded by every Python of a faulty run; does something wicked in the agent of one rank.
SITECUSTOMIZE = """
import os, sys
fault, rank = os.environ.get("FAULT", ""), os.environ.get("PMI_RANK") or os.environ.get("OMPI_COMM_WORLD_RANK")
rank = rank or os.environ.get("CHAINERDOCTOR_RANK")
# Forked probes inherit the patched agent; their own children (mpiexec --version) are left alone.
if fault and rank == os.environ.get("FAULTY_RANK") and not os.environ.get("FAULT_DONE"):
    os.environ["FAULT_DONE"] = "1"
    import signal, threading, time
    if fault == "sleep":
        time.sleep(3600)
    if fault == "exit":
        os._exit(0)
    if fault.startswith("killed"):
        def die():
            # The agent is the only child of the launcher's process, which is its witness.
            while True:
                with open("/proc/self/task/%d/children" % os.getpid()) as file:
                    children = file.read().split()
                if children:
                    break
                time.sleep(0.01)
            time.sleep(0.1)
            if fault == "killed-by-hydras-notice":
                os.kill(int(children[0]), signal.SIGUSR1)
                os.kill(os.getpid(), signal.SIGUSR1)
                return
            os.kill(int(children[0]), signal.SIGKILL)
            if fault == "killed-whole":
                os.kill(os.getpid(), signal.SIGKILL)
        threading.Thread(target=die, daemon=True).start()
    if fault == "garbage":
        def shout():
            rng = __import__("random").Random(1)
            for _ in range(300):
                os.write(1, bytes(rng.randrange(256) for _ in range(700)) + b"<@cd1 0 0 1/9 \\n")
                time.sleep(0.002)
        threading.Thread(target=shout, daemon=True).start()
"""


def running(mark: str) -> Set[str]:
    """Pids of processes whose environment holds this test's mark."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            environ = path.read_bytes()
        except OSError:
            continue
        if mark.encode() in environ:
            found.add(path.parent.name)
    return found


@pytest.fixture
def check_cluster(tmp_path: Path):
    """Run the command as a user does; gives the finished process. Whatever happens, nothing may be left running."""
    mark = f"CHAINERDOCTOR_TEST={tmp_path}"

    def run(
        python: str,
        *arguments: str,
        env: Optional[Dict[str, str]] = None,
        prefix: Optional[List[str]] = None,
        meanwhile: Optional[Callable[["subprocess.Popen[str]", Callable[[], Set[str]]], None]] = None,
    ) -> "subprocess.CompletedProcess[str]":
        clean = {k: v for k, v in os.environ.items() if not k.startswith(("PMI_", "OMPI_", "SLURM_", "NCCL_"))}
        # The MPI beside the interpreter has to be found, not one of the machine.
        clean["PATH"] = f"{os.path.dirname(python)}:/usr/bin:/bin"
        name, _, value = mark.partition("=")
        clean[name] = value
        clean.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", **(env or {}))
        command = [*(prefix or []), python, "-m", "chainerdoctor", "check-cluster", *arguments]
        if meanwhile is None:
            return subprocess.run(command, env=clean, cwd=tmp_path, capture_output=True, text=True, timeout=180)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=clean, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True) as process:
            meanwhile(process, lambda: running(mark))
            out, err = process.communicate(timeout=180)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    yield run
    until = time.monotonic() + 5
    while running(mark) and time.monotonic() < until:
        time.sleep(0.1)
    assert not running(mark)


@pytest.fixture
def faulty(tmp_path: Path):
    """Environment variables that put a fault into one rank's agent."""

    def make(fault: str, rank: int) -> Dict[str, str]:
        folder = tmp_path / "faults"
        folder.mkdir()
        (folder / "sitecustomize.py").write_text(SITECUSTOMIZE)
        return {"PYTHONPATH": f"{folder}:{ROOT}", "FAULT": fault, "FAULTY_RANK": str(rank)}

    return make
