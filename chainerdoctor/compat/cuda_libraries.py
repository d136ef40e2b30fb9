"""CUDA libraries that lie in NVIDIA's wheels, where CuPy 11 to 13 do not look."""

from __future__ import annotations

import ctypes
import glob
import os
import sys
from typing import Iterator, Tuple

from chainerdoctor.compat.patches import AtStart, version_of

#: Package of CuPy → the libraries that it looks for when Chainer asks for cuBLAS and cuDNN, in order of dependence.
_WANTED = {
    "cupy-cuda11x": ("libcublasLt.so.11", "libcublas.so.11", "libcudnn.so.8"),
    "cupy-cuda12x": ("libcublasLt.so.12", "libcublas.so.12", "libcudnn.so.8"),
    "cupy-cuda13x": ("libcublasLt.so.13", "libcublas.so.13"),
}


def _packages() -> Iterator[str]:
    for package in _WANTED:
        # CuPy 14 finds NVIDIA's wheels itself.
        if (11,) <= version_of(package) < (14,):
            yield package


def _needed() -> bool:
    return sys.platform == "linux" and any(_packages())


def _load_from_wheels() -> Tuple[str, ...]:
    """Load what the dynamic linker does not find by itself; what it finds (LD_LIBRARY_PATH, a toolkit) stays."""
    done = []
    for package in _packages():
        for library in _WANTED[package]:
            if _loads(library, ctypes.DEFAULT_MODE):
                continue
            for path in _in_wheels(library):
                if _loads(path, ctypes.RTLD_GLOBAL):
                    done.append(f"{library} from {path}")
                    break
    return tuple(done)


def _in_wheels(library: str) -> Iterator[str]:
    for folder in sys.path:
        yield from sorted(glob.glob(os.path.join(glob.escape(folder), "nvidia", "*", "lib", library)))


def _loads(path: str, mode: int) -> bool:
    try:
        ctypes.CDLL(path, mode=mode)
    except OSError:
        return False
    return True


PATCHES = (
    AtStart(
        name="CUDA libraries of NVIDIA's wheels",
        why="CuPy 11 to 13 do not look into them; without libcublas Chainer silently has no GPU, without cuDNN no cuDNN",
        needed=_needed,
        apply=_load_from_wheels,
    ),
)
