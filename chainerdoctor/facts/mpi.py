"""MPI: what is installed, what is loaded, and how the ranks were started."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from chainerdoctor.facts import Fact

#: Names of vendors as facts use them.
MPICH = "MPICH"
OPEN_MPI = "Open MPI"
INTEL_MPI = "Intel MPI"
MVAPICH = "MVAPICH"
SLURM = "Slurm"
UNKNOWN_VENDOR = "unknown"


@dataclass(frozen=True)
class Mpiexec(Fact):
    """An ``mpiexec`` of this machine; ``preferred`` marks the one that ``check-cluster`` would start."""

    path: str
    vendor: str
    version: str
    preferred: bool


@dataclass(frozen=True)
class MpiLibrary(Fact):
    """The MPI library that mpi4py loads in this rank's interpreter. ``path`` is the mapped file."""

    vendor: str
    version: str
    path: str
    mpi4py: str


@dataclass(frozen=True)
class LaunchedAs(Fact):
    """What the launcher's environment says of this rank; ``None`` where it does not say."""

    launcher: str
    rank: int
    size: int
    local_rank: Optional[int]
    local_size: Optional[int]


@dataclass(frozen=True)
class MpiWorld(Fact):
    """What MPI itself says after MPI_Init. ``cuda_aware`` is ``None`` if this MPI has no way to ask."""

    rank: int
    size: int
    processor_name: str
    thread_level: str
    cuda_aware: Optional[bool]
    init_s: float


@dataclass(frozen=True)
class RankOutcome(Fact):
    """How one rank's report ended, as the machine that gathered it saw.

    ``state`` is ``complete``, ``partial`` (it began and never finished), ``silent`` (nothing came), ``damaged`` (pieces
    arrived that could not be put together), ``died`` (its witness or the launcher says so) or ``cut`` (ended by the launcher because
    another rank died). ``detail`` is for people.
    """

    rank: int
    state: str
    detail: str


@dataclass(frozen=True)
class LauncherOutcome(Fact):
    """How the launcher itself ended: its command, exit status (``None``: still running, ended by us), last words."""

    launcher: str
    exit_status: Optional[int]
    wanted_ranks: int
    took_s: float
    last_words: str
