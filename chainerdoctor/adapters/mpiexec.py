"""The ``mpiexec`` programs of a machine, and whose they are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Iterator, List, Mapping, Optional

from chainerdoctor.facts.mpi import INTEL_MPI, MPICH, MVAPICH, OPEN_MPI, SLURM, UNKNOWN_VENDOR, Mpiexec
from chainerdoctor.host import Host

_NAMES = ("mpiexec", "mpirun")


def candidates(environ: Mapping[str, str], executable: str = sys.executable) -> List[str]:
    """Paths of launchers, the preferred first: beside the interpreter (wheels put it there), then along PATH."""
    folders = [os.path.dirname(executable), *environ.get("PATH", "").split(os.pathsep)]
    found: List[str] = []
    real = set()
    for folder in folders:
        for name in _NAMES:
            # Open MPI takes the folder above its own path as its installation, so /bin has to become /usr/bin.
            path = os.path.join(os.path.realpath(folder or "."), name)
            target = os.path.realpath(path)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                if target not in real:
                    found.append(path)
                real.add(target)
                break  # mpirun beside mpiexec is the same program under its older name
    return found


def vendor_and_version(text: str) -> tuple[str, str]:
    """Vendor and version out of what ``mpiexec --version`` prints."""
    for vendor, pattern in (
        (INTEL_MPI, r"Intel\(R\) MPI Library.*?Version ([\d.]+)"),
        (MVAPICH, r"MVAPICH\D*([\d.]+)"),
        (MPICH, r"HYDRA build details:\s*Version:\s*([\d.]+\w*)"),
        (OPEN_MPI, r"\(Open(?:RTE| MPI)\)\s*([\d.]+\w*)"),
        (OPEN_MPI, r"(?:prterun|mpirun|mpiexec)\s*\(.*?PRRTE.*?\)\s*([\d.]+)"),
        (SLURM, r"slurm(?:-wlm)? ([\d.]+)"),
    ):
        found = re.search(pattern, text, re.S)
        if found:
            return vendor, found.group(1)
    return UNKNOWN_VENDOR, (text.strip().splitlines() or [""])[0][:80]


def installed(host: Host, timeout_s: float = 5.0) -> Iterator[Mpiexec]:
    """Ask every candidate for its version. One that cannot be run is left out: it could not start ranks either."""
    for number, path in enumerate(candidates(host.environ)):
        told = _ask(host, path, timeout_s)
        if told is not None:
            vendor, version = vendor_and_version(told)
            yield Mpiexec(path, vendor, version, preferred=number == 0)


def _ask(host: Host, path: str, timeout_s: float) -> Optional[str]:
    try:
        ran = host.run([path, "--version"], timeout_s)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ran.out + ran.err
