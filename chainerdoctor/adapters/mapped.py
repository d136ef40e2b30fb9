"""The CUDA, NCCL and MPI libraries that this process has mapped, and what each says of its version."""

from __future__ import annotations

import ctypes
import os
import re
from typing import Dict, Iterator, Optional

from chainerdoctor.adapters.elf import build_id
from chainerdoctor.adapters.nccl import version_text
from chainerdoctor.facts.stack import MappedLibrary

_WATCHED = re.compile(
    r"/(lib(?:cudart|cublas|cublasLt|cudnn|nccl|nvrtc|cuda|curand|cusparse|cusolver|cufft|mpi))(?:-[0-9a-f]{8})?\.so[^/]*$"
)


def mapped_libraries() -> Iterator[MappedLibrary]:
    """Watched libraries of /proc/self/maps, sorted by path; two files of one name are two facts."""
    paths: Dict[str, str] = {}
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            columns = line.rstrip("\n").split(None, 5)
            found = _WATCHED.search(columns[5]) if len(columns) == 6 else None
            if found:
                paths[columns[5]] = found.group(1)
    for path, name in sorted(paths.items()):
        try:
            identity = build_id(path)
        except OSError:
            identity = None  # deleted or replaced since it was mapped
        yield MappedLibrary(name, path, _version(name, path), identity)


def _version(name: str, path: str) -> Optional[str]:
    """Ask the library by the call that needs no GPU; otherwise take the digits of its real file name."""
    try:
        library = ctypes.CDLL(path)
    except OSError:
        return None
    number = ctypes.c_int(0)
    if name == "libnccl" and library.ncclGetVersion(ctypes.byref(number)) == 0:
        return version_text(number.value)
    if name == "libcudart" and library.cudaRuntimeGetVersion(ctypes.byref(number)) == 0:
        return _cuda_text(number.value)
    if name == "libcuda" and library.cuDriverGetVersion(ctypes.byref(number)) == 0:
        return _cuda_text(number.value)
    if name == "libcudnn":
        library.cudnnGetVersion.restype = ctypes.c_size_t
        code = library.cudnnGetVersion()
        # 8907 is 8.9.7; from 9.0 on five digits: 90100 is 9.1.0.
        base = 10000 if code >= 90000 else 1000
        return f"{code // base}.{code % base // 100}.{code % 100}"
    if name == "libnvrtc":
        minor = ctypes.c_int(0)
        if library.nvrtcVersion(ctypes.byref(number), ctypes.byref(minor)) == 0:
            return f"{number.value}.{minor.value}"
    digits = re.search(r"\.so\.([\d.]+)$", os.path.realpath(path))
    return digits.group(1) if digits else None


def _cuda_text(code: int) -> str:
    return f"{code // 1000}.{code % 1000 // 10}"
