"""Builds the simulated libraries with the system's compiler, once, and keeps them in the user's cache directory.

A library lies in a directory named by a hash of everything that goes into it (sources, flags, compiler), so a changed
source or compiler is built again and nothing is ever overwritten. One process builds while others wait for it; a
finished directory appears by a rename, so a build that is killed half way leaves nothing behind that could be used.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import Dict, Iterator, List, NamedTuple, Sequence, Tuple

SOURCES = Path(__file__).with_name("csrc")


class SimulationUnavailable(RuntimeError):
    """The simulation cannot be built or used here; the message is one line that says what to do."""


class Library(NamedTuple):
    """One shared library: its soname, its sources (globs below csrc), the other names under which it is found, and its
    symbol versions as (node, pattern) where programs ask for versions."""

    soname: str
    sources: Tuple[str, ...]
    names: Tuple[str, ...] = ()
    versions: Tuple[Tuple[str, str], ...] = ()


_SHARED = ("plan.c", "scenario.c", "board.c")

_CUDA_VERSIONS = (
    ("libcudart.so.12", "cuda*"),
    ("libnvrtc.so.12", "nvrtc*"),
    ("libcublas.so.12", "cublas*"),
    ("libcurand.so.10", "curand*"),
    ("libcufft.so.11", "cufft*"),
    ("libcusolver.so.11", "cusolver*"),
    ("libcusparse.so.12", "cusparse*"),
)

#: What each name that ``environment`` takes consists of.
LIBRARIES: Dict[str, Tuple[Library, ...]] = {
    "nvml": (Library("libnvidia-ml.so.1", (*_SHARED, "nvml/*.c")),),
    "nccl": (Library("libnccl.so.2", (*_SHARED, "nccl/*.c")),),
    # One object under every name: the libraries share the current device and the allocations. Programs are linked
    # against versioned symbols, and the loader takes files with one inode for one library.
    "cuda": (
        Library(
            "libcuda.so.1",
            (*_SHARED, "cuda/*.c"),
            tuple(node for node, _ in _CUDA_VERSIONS),
            (*_CUDA_VERSIONS, ("libcuda.so.1", "cu[A-Z]*")),
        ),
    ),
}

#: CuPy's entries into Thrust, for LD_PRELOAD.
THRUST = Library("libchainerdoctor-thrust.so", ("thrust/*.c",))

_FLAGS = (
    "-std=gnu11",
    "-O3",
    "-fPIC",
    "-shared",
    "-pthread",
    "-fvisibility=hidden",
    "-Wall",
    "-Wextra",
    "-Wl,-z,defs",
    "-Wl,--as-needed",
)


def cache_directory() -> Path:
    """Where built libraries, plans and kernels are kept: ``$XDG_CACHE_HOME/chainerdoctor/simulate``."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(root) / "chainerdoctor" / "simulate"


def compiler(language: str = "c") -> List[str]:
    """The compiler's command: ``$CC``/``$CXX``, else the first of the usual names.

    Raises:
        SimulationUnavailable: there is none.
    """
    variable, names = ("CC", ("cc", "gcc", "clang")) if language == "c" else ("CXX", ("c++", "g++", "clang++"))
    chosen = os.environ.get(variable, "").split()
    for command in [chosen] if chosen else [[name] for name in names]:
        if shutil.which(command[0]):
            return command
    wanted = chosen[0] if chosen else " or ".join(names)
    package = "gcc" if language == "c" else "g++"
    raise SimulationUnavailable(f"simulated GPUs need a compiler and {wanted} is not there: install {package}")


def build(library: Library) -> Path:
    """The directory that holds the library, built if it is not there yet.

    Raises:
        SimulationUnavailable: no compiler, no place to write, or the compiler failed (its first error is quoted).
    """
    command = [*compiler(), *_FLAGS]
    sources = [path for pattern in library.sources for path in sorted(SOURCES.glob(pattern))]
    target = cache_directory() / f"{library.soname}-{_key(library, command)}"
    if (target / library.soname).is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with locked(target.parent / f"{target.name}.lock"):
            if not (target / library.soname).is_file():
                _compile(library, command, sources, target)
    except OSError as error:
        raise SimulationUnavailable(f"cannot keep built libraries in {target.parent}: {error.strerror}") from error
    return target


def _key(library: Library, command: Sequence[str]) -> str:
    digest = hashlib.sha256(repr((library, tuple(command))).encode())
    version = subprocess.run([command[0], "--version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    digest.update(version.stdout)
    for path in sorted(SOURCES.rglob("*.[ch]")):
        digest.update(f"{path.relative_to(SOURCES)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _compile(library: Library, command: Sequence[str], sources: Sequence[Path], target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=str(target.parent)) as scratch:
        made = Path(scratch) / "library"
        made.mkdir()
        arguments = [*command, f"-Wl,-soname,{library.soname}", "-o", str(made / library.soname)]
        if library.versions:
            script = Path(scratch) / "versions.map"
            nodes = [f"{node} {{ global: {pattern}; }};\n" for node, pattern in library.versions]
            script.write_text("".join(nodes).replace("cuda*;", "cuda*; __cuda*;"), encoding="utf-8")
            arguments.append(f"-Wl,--version-script={script}")
        arguments += [str(path) for path in sources]
        done = subprocess.run(
            [*arguments, "-lm", "-ldl"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode:
            output = done.stdout.decode(errors="replace").splitlines()
            said = next((line for line in output if "error" in line), output[-1] if output else "no message")
            raise SimulationUnavailable(f"{command[0]} could not build the simulated {library.soname}: {said.strip()}")
        for name in library.names:
            os.symlink(library.soname, str(made / name))
        os.rename(str(made), str(target))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file lock; it ends with this process at the latest, so a killed builder blocks nobody."""
    with open(path, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def write_once(path: Path, text: str) -> Path:
    """Write a file whose name is made from its content, atomically; nothing happens if it is there."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=str(path.parent), delete=False) as file:
            file.write(text)
        os.replace(file.name, str(path))
    return path
