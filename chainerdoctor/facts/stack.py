"""The Python stack of a rank: interpreter, packages, imports, mapped libraries, environment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class Interpreter(Fact):
    """``sha256`` is of the binary that runs, so that two nodes with "the same" Python can be told apart."""

    executable: str
    version: str
    implementation: str
    sha256: str


@dataclass(frozen=True)
class Distribution(Fact):
    """One installed package that matters to Chainer on GPUs."""

    name: str
    version: str
    location: str


@dataclass(frozen=True)
class PackageSurvey(Fact):
    """How many installed packages were listed: without it "not installed" could mean "not looked"."""

    packages: int


@dataclass(frozen=True)
class ImportOutcome(Fact):
    """Whether ``import module`` works. ``error`` is ``Type: text`` of the deepest cause; empty if it worked."""

    module: str
    ok: bool
    version: Optional[str]
    error: str
    took_s: float


@dataclass(frozen=True)
class ChainerCuda(Fact):
    """``chainer.backends.cuda``: what it says, and the error that it hides (empty if there is none)."""

    available: bool
    cudnn_enabled: bool
    hidden_error: str


@dataclass(frozen=True)
class MappedLibrary(Fact):
    """A CUDA or MPI library as this process really maps it after importing the stack.

    ``version`` is what the library says of itself (or its file name where it has no call for it), ``build_id`` the GNU
    build id, ``None`` where the file has none.
    """

    name: str
    path: str
    version: Optional[str]
    build_id: Optional[str]


@dataclass(frozen=True)
class NcclVersion(Fact):
    """A version of NCCL and where it stands: ``loaded``, ``cupy-build`` or ``wheel``."""

    source: str
    version: str


@dataclass(frozen=True)
class EnvironmentVariable(Fact):
    """One variable of the allow-list, as the rank sees it."""

    name: str
    value: str


@dataclass(frozen=True)
class EnvironmentSurvey(Fact):
    """How many variables of the allow-list are set: an empty list was looked at, too."""

    variables: int


@dataclass(frozen=True)
class SettingsFile(Fact):
    """A settings file that NCCL reads, with its (name, value) pairs."""

    path: str
    settings: Tuple[Tuple[str, str], ...]


@dataclass(frozen=True)
class TrainingScript(Fact):
    """The script that is to be run, as this rank finds it."""

    path: str
    sha256: str
    size_bytes: int
