"""The environment variables and settings files that change how NCCL, MPI, CUDA and Chainer behave."""

from __future__ import annotations

import hashlib
import os
import re
from typing import Iterator

from chainerdoctor.facts import ABSENT, Fact
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable, SettingsFile, TrainingScript
from chainerdoctor.host import Host
from chainerdoctor.probes import RANK, Probe, Unseen

#: Only these are taken: a variable that is not named here could hold a secret.
_PREFIXES = (
    "NCCL_", "OMPI_MCA_", "UCX_", "MV2_", "I_MPI_", "CUDA_", "CHAINER_", "CHAINERMN_", "OMP_", "MKL_", "OPENBLAS_",
    "CUPY_", "FI_", "MPIR_CVAR_", "MPICH_", "MPI4PY_", "NVIDIA_",
)  # fmt: skip
_NAMES = frozenset(
    {"LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE", "VIRTUAL_ENV", "CONDA_PREFIX"}
)
#: Words by which a variable of an allowed prefix is still left out.
_SECRET = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|PRIVATE|API_?KEY|AUTH", re.I)
#: Set by the launcher itself, different on each rank by design.
_LAUNCHER_OWN = re.compile(r"OMPI_MCA_(ess_|orte_|pmix|mpi_yield|initial_|schizo_|prte_)|MPIR_CVAR_CH4_SHM_ID")


def environment(host: Host) -> Iterator[Fact]:
    """The allow-listed variables, sorted by name."""
    count = 0
    for name in sorted(host.environ):
        allowed = name in _NAMES or name.startswith(_PREFIXES)
        if allowed and not _SECRET.search(name) and not _LAUNCHER_OWN.match(name):
            count += 1
            yield EnvironmentVariable(name, host.environ[name])
    yield EnvironmentSurvey(count)


def nccl_settings(host: Host) -> Iterator[Fact]:
    """``/etc/nccl.conf``, ``~/.nccl.conf`` and ``NCCL_CONF_FILE`` (NCCL user guide, "Environment Variables")."""
    own = host.environ.get("NCCL_CONF_FILE") or os.path.join(host.environ.get("HOME", "/"), ".nccl.conf")
    found = False
    for path in ("/etc/nccl.conf", own):
        try:
            text = host.read(path)
        except OSError:
            continue
        found = True
        pairs = re.findall(r"^\s*(\w+)\s*=\s*(.*?)\s*$", text, re.M)
        yield SettingsFile(path, tuple(pair for pair in pairs if not _SECRET.search(pair[0])))
    if not found:
        raise Unseen(ABSENT, "no nccl.conf")


def training_script(host: Host) -> Iterator[Fact]:
    """The script named by ``--script``; the agent passes it on as ``CHAINERDOCTOR_SCRIPT``."""
    path = host.environ.get("CHAINERDOCTOR_SCRIPT")
    if not path:
        raise Unseen(ABSENT, "no script was named (--script)")
    content = host.read_bytes(path, limit=64 * 1024 * 1024)
    yield TrainingScript(host.real_path(path), hashlib.sha256(content).hexdigest(), len(content))


PROBES = (
    Probe("environment", RANK, 5.0, (EnvironmentVariable, EnvironmentSurvey), environment),
    Probe("nccl_settings", RANK, 5.0, (SettingsFile,), nccl_settings),
    Probe("training_script", RANK, 5.0, (TrainingScript,), training_script),
)
