"""What simulated CUDA needs beside its library: where kernels are compiled, and how CuPy has to be set up."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Dict

from chainerdoctor.simulate.build import (
    SOURCES,
    THRUST,
    SimulationUnavailable,
    build,
    cache_directory,
    compiler,
    locked,
)

_DEVICE = SOURCES / "cuda" / "device"
#: The flags that change what a precompiled header means; nvrtc.c compiles kernels with the same ones.
_HEADER_FLAGS = (
    "-std=gnu++14",
    "-O2",
    "-ftree-vectorize",
    "-w",
    "-fpermissive",
    "-fno-math-errno",
    "-fvisibility=hidden",
    "-fPIC",
)


def variables() -> Dict[str, str]:
    """Environment variables for CuPy 12.3 on simulated CUDA.

    Raises:
        SimulationUnavailable: no C++ compiler, or the headers do not compile.
    """
    command = compiler("c++")
    if len(command) > 1:
        raise SimulationUnavailable(f"CXX has to be one word for simulated GPUs, not {' '.join(command)!r}")
    preload = [str(build(THRUST) / THRUST.soname), *os.environ.get("LD_PRELOAD", "").split(":")]
    return {
        "LD_PRELOAD": ":".join(entry for entry in preload if entry),
        "CHAINERDOCTOR_SIM_CXX": command[0],
        "CHAINERDOCTOR_SIM_DEVICE": str(_DEVICE),
        "CHAINERDOCTOR_SIM_KERNELS": str(_kernel_directory(command[0])),
        # CUB's kernels are compiled for real GPUs, and with them sums would be silently wrong
        "CUPY_ACCELERATORS": "",
        # CuPy's own cache does not tell simulated kernels from real ones; ours is below
        "CUPY_CACHE_IN_MEMORY": "1",
    }


def _kernel_directory(command: str) -> Path:
    """Where compiled kernels lie: one directory for each state of the headers and the compiler."""
    version = subprocess.run([command, "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    digest = hashlib.sha256(repr((command, _HEADER_FLAGS)).encode() + version.stdout)
    for path in (*sorted(_DEVICE.glob("*.h")), SOURCES / "half.h", SOURCES / "cuda" / "nvrtc.c"):
        digest.update(path.read_bytes())
    folder = cache_directory() / f"kernels-{digest.hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    if b"clang" not in version.stdout and not (folder / "kernel.h.gch").is_file():
        with locked(folder / "kernel.h.lock"):
            if not (folder / "kernel.h.gch").is_file():
                _precompile(command, folder)
    return folder


def _precompile(command: str, folder: Path) -> None:
    """Compile the device headers once: each kernel then takes about half the time."""
    with tempfile.TemporaryDirectory(dir=str(folder)) as scratch:
        made = os.path.join(scratch, "kernel.h.gch")
        arguments = [command, *_HEADER_FLAGS, "-x", "c++-header", str(_DEVICE / "kernel.h"), "-o", made]
        done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode:
            lines = done.stdout.decode(errors="replace").splitlines()
            said = next((line for line in lines if "error" in line), "no message")
            raise SimulationUnavailable(f"{command} cannot compile the simulated GPU's headers: {said.strip()}")
        os.replace(made, str(folder / "kernel.h.gch"))
