"""MPI: launchers on this machine, the library that mpi4py loads, how this rank was started, and MPI's own world."""

from __future__ import annotations

from typing import Callable, Iterator

from chainerdoctor.adapters import mpi, mpiexec
from chainerdoctor.facts import ABSENT, Fact
from chainerdoctor.facts.mpi import LaunchedAs, Mpiexec, MpiLibrary, MpiWorld
from chainerdoctor.host import Host
from chainerdoctor.launch.identity import identity
from chainerdoctor.probes import ACTIVE, NODE, PASSIVE, RANK, WORLD, Probe, Unseen
from chainerdoctor.probes.workloads import count_gpus, why_no_nccl
from chainerdoctor.workloads.collectives import BETWEEN_RANKS, between_ranks


def launchers(host: Host) -> Iterator[Fact]:
    """Every mpiexec that can be run."""
    found = list(mpiexec.installed(host))
    if not found:
        raise Unseen(ABSENT, "no mpiexec beside the interpreter or on PATH")
    yield from found


def library(host: Host) -> Iterator[Fact]:
    """The MPI library of this interpreter's mpi4py."""
    try:
        yield mpi.library()
    except ModuleNotFoundError as error:
        raise Unseen(ABSENT, f"ModuleNotFoundError: {error}") from None
    except (ImportError, RuntimeError) as error:
        # mpi4py's wheels raise RuntimeError("cannot load MPI library"): mpi4py is there and MPI is not.
        raise Unseen(ABSENT, f"{type(error).__name__}: {str(error).splitlines()[0]}") from None


def launched_as(host: Host) -> Iterator[Fact]:
    """Rank and size as the launcher put them into the environment."""
    told = identity(host.environ)
    if told is None:
        raise Unseen(ABSENT, "not started by a launcher")
    yield told


def world(host: Host) -> Iterator[Fact]:
    """Rank and size as MPI says after MPI_Init; only where a launcher that speaks to MPI started this rank."""
    return _in_world(host, lambda: iter(()))


def working_world(host: Host) -> Iterator[Fact]:
    """The same, and what short computations between the ranks give."""
    told = identity(host.environ)
    # Before MPI_Init: processes are not to be started after it.
    gpus, why = count_gpus(), why_no_nccl(host)
    return _in_world(host, lambda: between_ranks(None if told is None else told.local_rank, gpus, why))


def _in_world(host: Host, work: Callable[[], Iterator[Fact]]) -> Iterator[Fact]:
    told = identity(host.environ)
    if told is None or told.launcher in ("local", "ssh"):
        raise Unseen(ABSENT, "ranks were started without MPI")
    try:
        world, finalise = mpi.join_world()
    except (ImportError, RuntimeError) as error:
        raise Unseen(ABSENT, f"{type(error).__name__}: {str(error).splitlines()[0]}") from None
    yield world
    # Where each process is a world of its own there is nothing between them.
    if world.size == told.size:
        yield from work()
    finalise()


PROBES = (
    Probe("mpiexec", NODE, 15.0, (Mpiexec,), launchers),
    Probe("mpi_library", RANK, 20.0, (MpiLibrary,), library),
    Probe("launched_as", RANK, 5.0, (LaunchedAs,), launched_as),
    # MPI_Init waits for every rank of the job, so its deadline covers the slowest of them.
    Probe("mpi_world", RANK, 20.0, (MpiWorld,), world, wave=WORLD, when=PASSIVE),
    Probe("mpi_world", RANK, 50.0, (MpiWorld, *BETWEEN_RANKS), working_world, wave=WORLD, when=ACTIVE),
)
