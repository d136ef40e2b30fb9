"""The command lines that start agents: mpiexec of each vendor, srun, ssh, or plain processes on this machine."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import Dict, List, Mapping, Optional, Tuple

from chainerdoctor.adapters import mpiexec
from chainerdoctor.facts.mpi import INTEL_MPI, MPICH, MVAPICH, OPEN_MPI, Mpiexec
from chainerdoctor.host import LiveHost
from chainerdoctor.launch.collect import Launch, LaunchError
from chainerdoctor.launch.hosts import HostsError, Slots, place

LAUNCHERS = ("auto", "local", "mpiexec", "slurm", "ssh")


def agent_command(timeout_s: float, active: bool = True) -> Tuple[str, ...]:
    """The agent's command line; ``active`` ones also compute something."""
    command = (sys.executable, "-m", "chainerdoctor.launch.agent", "--deadline", f"{timeout_s:g}")
    return command if active else (*command, "--passive")


def plan(
    launcher: str, ranks: Optional[int], hosts: Tuple[Slots, ...], agent: Tuple[str, ...], recover: bool = True
) -> Launch:
    """Decide how to start ``agent``, the command of each rank.

    ``recover`` keeps the other ranks when one dies, where the launcher can; without it the launcher does what it does
    for the user's own programs.

    ``auto`` takes srun inside a Slurm allocation, else mpiexec where one is found, else ssh where hosts are named,
    else plain processes.

    Raises:
        LaunchError: that launcher is not here, or cannot do what is asked.
    """
    if ranks is not None and ranks < 1:
        raise LaunchError(f"-n {ranks}: at least one rank is needed")
    chosen = _auto(hosts) if launcher == "auto" else launcher
    try:
        placed = place(hosts, ranks) if hosts else ()
    except HostsError as error:
        raise LaunchError(str(error)) from None
    if chosen in ("mpiexec", "local") and not placed and (ranks or 1) > _most_here():
        raise LaunchError(
            f"-n {ranks}: at most {_most_here()} ranks are started on this machine; name the others with --hosts"
        )
    if chosen == "mpiexec":
        return _by_mpiexec(agent, ranks or sum(p.slots for p in placed) or 1, placed, recover)
    if chosen == "slurm":
        return _by_srun(agent, ranks, placed, recover)
    if chosen == "ssh":
        if not placed:
            raise LaunchError("--launcher ssh needs --hosts or --hostfile")
        return _by_ssh(agent, placed)
    if placed:
        raise LaunchError(
            "--launcher local starts ranks on this machine only; leave --hosts out or take another launcher"
        )
    return _local(agent, ranks or 1)


def _most_here() -> int:
    """Ranks that one machine is asked to run: a slip of the finger (-n 100000) must not bring it down."""
    return max(256, 32 * (os.cpu_count() or 1))


def _auto(hosts: Tuple[Slots, ...]) -> str:
    if "SLURM_JOB_ID" in os.environ and shutil.which("srun"):
        return "slurm"
    if mpiexec.candidates(os.environ):
        return "mpiexec"
    return "ssh" if hosts else "local"


def preferred_mpiexec() -> Mpiexec:
    """The mpiexec that ``check-cluster`` starts.

    Raises:
        LaunchError: none is found, or none answers to ``--version``.
    """
    found = next(mpiexec.installed(LiveHost()), None)
    if found is None:
        raise LaunchError("no mpiexec is found; install one (pip install mpich) or use --launcher local")
    return found


def _by_mpiexec(agent: Tuple[str, ...], ranks: int, hosts: Tuple[Slots, ...], recover: bool) -> Launch:
    found = preferred_mpiexec()
    environ = dict(os.environ)
    words: List[str] = [found.path]
    if found.vendor == OPEN_MPI:
        words += _open_mpi_words(found, hosts, environ, recover)
    elif found.vendor in (MPICH, INTEL_MPI, MVAPICH):
        if found.vendor == MPICH and recover:
            words.append("-disable-auto-cleanup")  # as --enable-recovery below
        if hosts:
            words += ["-hosts", ",".join(f"{h.host}:{h.slots}" for h in hosts)]
    elif hosts:
        raise LaunchError(f"{found.path} is of an unknown kind ({found.version}): its host options are not known")
    launcher, line = f"mpiexec ({found.vendor} {found.version})", (*words, "-n", str(ranks), *agent)
    return Launch(launcher, ranks, (line,), (environ,), tuple(entry.host for entry in hosts))


def _open_mpi_words(found: Mpiexec, hosts: Tuple[Slots, ...], environ: Dict[str, str], recover: bool) -> List[str]:
    if os.geteuid() == 0:
        # Open MPI refuses root without these; agents only read, and containers are root by default.
        environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    # One rank that dies must not take the reports of the others with it.
    words = ["--enable-recovery"] if recover else []
    if hosts:
        return [*words, "--host", ",".join(f"{h.host}:{h.slots}" for h in hosts)]
    # Checking -n 4 on a laptop with two cores is a sensible wish, and agents do not compute.
    major = found.version.split(".")[0]
    return [*words, *(("--map-by", ":OVERSUBSCRIBE") if major.isdigit() and int(major) >= 5 else ("--oversubscribe",))]


def _by_srun(agent: Tuple[str, ...], ranks: Optional[int], hosts: Tuple[Slots, ...], recover: bool) -> Launch:
    srun = shutil.which("srun")
    if srun is None:
        raise LaunchError("srun is not found; --launcher slurm needs Slurm's client programs")
    count = ranks or int(os.environ.get("SLURM_NTASKS", "0")) or sum(h.slots for h in hosts) or 1
    words = [srun, f"--kill-on-bad-exit={0 if recover else 1}", "--unbuffered", "-n", str(count), *_srun_plugin(srun)]
    if hosts:
        words += ["-N", str(len(hosts)), "-w", ",".join(h.host for h in hosts)]
    # Inside an allocation a second step must share its resources with the one that asks.
    environ = {**os.environ, "SLURM_OVERLAP": "1"}
    return Launch("srun", count, ((*words, *agent),), (environ,))


def _srun_plugin(srun: str) -> List[str]:
    """The option by which srun speaks to the MPI that mpi4py loads here; nothing where the user or the site chose one.

    Without it each rank is alone (CD401), unless the site has set MpiDefault to the right plugin.
    """
    if "SLURM_MPI_TYPE" in os.environ:
        return []
    ask = [sys.executable, "-c", "from chainerdoctor.adapters import mpi; print(mpi.library().vendor)"]
    try:
        vendor = subprocess.run(ask, capture_output=True, text=True, timeout=20).stdout.strip()
        listed = LiveHost().run([srun, "--mpi=list"], 10.0)
    except (OSError, subprocess.TimeoutExpired):
        return []
    plugins = re.findall(r"[a-z]\w+", listed.out + listed.err)
    wanted = "pmix" if vendor == OPEN_MPI else "pmi2" if vendor in (MPICH, INTEL_MPI, MVAPICH) else ""
    return [f"--mpi={wanted}"] if wanted in plugins else []


def _by_ssh(agent: Tuple[str, ...], hosts: Tuple[Slots, ...]) -> Launch:
    ssh = shutil.which("ssh")
    if ssh is None:
        raise LaunchError("ssh is not found")
    commands, rank, total = [], 0, sum(h.slots for h in hosts)
    for entry in hosts:
        for local_rank in range(entry.slots):
            told = _own_identity("ssh", rank, total, local_rank, entry.slots)
            carried = {name: os.environ[name] for name in ("PYTHONPATH", "CHAINERDOCTOR_SCRIPT") if name in os.environ}
            line = " ".join(
                [
                    "exec",
                    "env",
                    *(f"{k}={shlex.quote(v)}" for k, v in {**carried, **told}.items()),
                    *map(shlex.quote, agent),
                ]
            )
            # The user's own ssh settings apply; a question that nobody can answer has to fail, not wait.
            commands.append((ssh, "-o", "BatchMode=yes", entry.host, line))
            rank += 1
    return Launch("ssh", total, tuple(commands), tuple(dict(os.environ) for _ in commands))


def _local(agent: Tuple[str, ...], ranks: int) -> Launch:
    environments: List[Mapping[str, str]] = [
        {**os.environ, **_own_identity("local", rank, ranks, rank, ranks)} for rank in range(ranks)
    ]
    return Launch("local", ranks, tuple(agent for _ in range(ranks)), tuple(environments))


def _own_identity(launcher: str, rank: int, size: int, local_rank: int, local_size: int) -> Dict[str, str]:
    return {
        "CHAINERDOCTOR_LAUNCHER": launcher,
        "CHAINERDOCTOR_RANK": str(rank),
        "CHAINERDOCTOR_SIZE": str(size),
        "CHAINERDOCTOR_LOCAL_RANK": str(local_rank),
        "CHAINERDOCTOR_LOCAL_SIZE": str(local_size),
    }
