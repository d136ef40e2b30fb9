"""N GPUs without a GPU: simulated NVML, NCCL and CUDA libraries, driven by one scenario file.

``environment`` gives the variables with which a child process sees the scenario's machine::

    subprocess.run(["gpustat"], env={**os.environ, **environment("machine.scn", ("nvml",))})

The scenario's format is in :mod:`chainerdoctor.simulate.scenario`. From a shell::

    python -m chainerdoctor.simulate machine.scn -- mpiexec -n 4 python train.py

What it is not: there is no asynchronous execution. Streams run at once, device pointers are host pointers, and a kernel
is C++ that the system's compiler made from CuPy's CUDA C. Missing synchronisation cannot be seen here.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Dict, Optional, Sequence, Union

from chainerdoctor.simulate.build import LIBRARIES, SimulationUnavailable, build, cache_directory, write_once
from chainerdoctor.simulate.scenario import Scenario, ScenarioError, load

__all__ = ["Scenario", "ScenarioError", "SimulationUnavailable", "environment", "load"]

_ONE_DAY_S = 86400.0


def environment(
    scenario: Union[str, Path],
    libraries: Sequence[str] = ("nvml", "nccl", "cuda"),
    shared: Optional[Path] = None,
    start_s: Optional[float] = None,
) -> Dict[str, str]:
    """Environment variables for a child process that is to see the simulated machine.

    Args:
        scenario: path of the scenario file.
        libraries: which libraries are simulated: "nvml", "nccl", "cuda". CUDA needs g++ when kernels are compiled.
        shared: directory for the memory counters that all processes of one machine share. Without it one is made, and
            removed when this process ends.
        start_s: epoch seconds of the scenario's t = 0; now, if left out.

    Returns:
        Variables to lay over the child's environment. LD_LIBRARY_PATH keeps what it holds in this process.

    Raises:
        ScenarioError: the scenario is wrong (one line with place and problem).
        SimulationUnavailable: no compiler, or nothing can be written (one line that says what to do).
        ValueError: a library that there is not.
    """
    unknown = [name for name in libraries if name not in LIBRARIES]
    if unknown:
        raise ValueError(f"no simulated library {unknown[0]!r}; there are {', '.join(LIBRARIES)}")
    plan = load(scenario).as_plan()
    folders = [str(build(library)) for name in libraries for library in LIBRARIES[name]]
    name = hashlib.sha256(plan.encode()).hexdigest()[:16]
    try:
        plan_path = write_once(cache_directory() / "plans" / f"{name}.plan", plan)
        counters = _make_shared() if shared is None else shared
    except OSError as error:
        raise SimulationUnavailable(f"cannot write the simulation's files: {error.strerror}") from error
    inherited = os.environ.get("LD_LIBRARY_PATH", "")
    variables = {
        "LD_LIBRARY_PATH": ":".join([*folders, inherited] if inherited else folders),
        "CHAINERDOCTOR_SIM_PLAN": str(plan_path),
        "CHAINERDOCTOR_SIM_SHM": str(counters),
        "CHAINERDOCTOR_SIM_T0": f"{time.time() if start_s is None else start_s:.6f}",
    }
    if "cuda" in libraries:
        from chainerdoctor.simulate import cuda

        variables.update(cuda.variables())
    return variables


def _make_shared() -> Path:
    root = Path("/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()) / f"chainerdoctor-{os.getuid()}"  # noqa: S108
    root.mkdir(mode=0o700, exist_ok=True)
    for old in root.iterdir():
        # left by a process that was killed; a day is longer than any simulated run should take
        if time.time() - old.stat().st_mtime > _ONE_DAY_S:
            shutil.rmtree(str(old), ignore_errors=True)
    made = Path(tempfile.mkdtemp(dir=str(root)))
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(str(made), ignore_errors=True) if os.getpid() == owner else None)
    return made
