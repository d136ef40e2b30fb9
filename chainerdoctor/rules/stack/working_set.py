"""What rules of the stack share: version numbers, the error of an import, and the set of versions that works here."""

from __future__ import annotations

import functools
import re
from typing import Optional, Set, Tuple

from chainerdoctor.facts import Fact
from chainerdoctor.facts.gpu import Gpu, GpuDriver
from chainerdoctor.facts.stack import Distribution, ImportOutcome, Interpreter
from chainerdoctor.findings import Evidence
from chainerdoctor.snapshot import Sighting, Snapshot
from chainerdoctor.tables.working_stacks import NoStackError, recommend

#: NVIDIA's wheel that holds a library, by its stem; {cuda} is the major version of CUDA.
_WHEELS = {
    "libcublas": "nvidia-cublas-cu{cuda}",
    "libcublasLt": "nvidia-cublas-cu{cuda}",
    "libcudart": "nvidia-cuda-runtime-cu{cuda}",
    "libcufft": "nvidia-cufft-cu{cuda}",
    "libcurand": "nvidia-curand-cu{cuda}",
    "libcusolver": "nvidia-cusolver-cu{cuda}",
    "libcusparse": "nvidia-cusparse-cu{cuda}",
    "libnvrtc": "nvidia-cuda-nvrtc-cu{cuda}",
}


@functools.lru_cache(maxsize=4096)
def version_tuple(text: str) -> Tuple[int, ...]:
    """The leading numbers of a version: ``1.23.5rc1`` → (1, 23, 5)."""
    return tuple(int(part) for part in re.findall(r"\d+", re.split(r"[^0-9.]", text, maxsplit=1)[0]))


def cupy_cuda_major(name: str) -> Optional[int]:
    """The CUDA major version that a CuPy package is made for: ``cupy-cuda12x`` → 12, ``cupy-cuda102`` → 10."""
    found = re.fullmatch(r"cupy-cuda(\d\d)x", name) or re.fullmatch(r"cupy-cuda(\d\d?)\d", name)
    return int(found.group(1)) if found else None


def import_error(snapshot: Snapshot, place: Sighting[Fact], module: str) -> Tuple[Evidence, ...]:
    """The error that importing ``module`` gave at this place, as evidence; nothing if it worked."""
    for seen in snapshot.all(ImportOutcome):
        if (seen.node, seen.rank, seen.fact.module) == (place.node, place.rank, module) and not seen.fact.ok:
            return (Evidence(f"import {module}", seen.fact.error, "works"),)
    return ()


def under_compat(snapshot: Snapshot) -> Set[Tuple[str, Optional[int]]]:
    """Places where Chainer imports although NumPy 2 or Python 3.12 is there: the compat layer is at work."""
    works = {(s.node, s.rank) for s in snapshot.all(ImportOutcome) if s.fact.module == "chainer" and s.fact.ok}
    new = {(s.node, s.rank) for s in snapshot.all(Interpreter) if version_tuple(s.fact.version) >= (3, 12)}
    new |= {
        (s.node, s.rank)
        for s in snapshot.all(Distribution)
        if s.fact.name == "numpy" and version_tuple(s.fact.version) >= (2,)
    }
    return works & new


def missing_library(error: str) -> Optional[str]:
    """The file that the loader did not find: ``libcublas.so.12`` out of "… cannot open shared object file"."""
    found = re.search(r"(lib[\w.+-]+\.so[\w.]*): cannot open shared object file", error)
    return found.group(1) if found else None


def library_remedy(error: str) -> Optional[str]:
    """How to get the library that an error misses, ``None`` where the error is of another kind."""
    library = missing_library(error)
    if library is None:
        return None
    stem, _, soname = library.partition(".so.")
    if stem == "libcuda":
        return "Install the NVIDIA driver, or start the container with GPUs (docker run --gpus all)."
    cuda = {"11.0": "11", "11.2": "11"}.get(soname, soname.split(".")[0] or "12")
    wheel = _WHEELS.get(stem)
    if wheel is None:
        return f"Install the CUDA library {library} and add its folder to LD_LIBRARY_PATH."
    name = wheel.format(cuda=cuda)
    return f"Run pip install {name} and add its folder (site-packages/nvidia/*/lib) to LD_LIBRARY_PATH before Python starts."


def install_command(snapshot: Snapshot, node: str) -> str:
    """:func:`working_command` as a remedy, or what to do where no set fits this machine."""
    try:
        return f"Run {working_command(snapshot, node)}"
    except NoStackError as error:
        return f"Choose another Python, driver or GPU node: {error}."


def working_command(snapshot: Snapshot, node: str) -> str:
    """The command that installs the set of versions that works with this node's Python, driver and GPU.

    Raises:
        NoStackError: no set is known to work on such a machine.
    """
    python = next((s.fact.version for s in snapshot.all(Interpreter) if s.node == node), "3.11")
    driver = next((s.fact for s in snapshot.all(GpuDriver) if s.node == node), None)
    gpu = next((s.fact for s in snapshot.all(Gpu) if s.node == node), None)
    major, minor = (version_tuple(python) + (0, 0))[:2]
    stack = recommend(
        python=(major, minor),
        driver=None if driver is None else driver.version,
        cuda=None,
        compute_capability=None if gpu is None else gpu.compute_capability,
    )
    return stack.pip_command
