"""Who this process is among the ranks, as launchers tell through the environment."""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

from chainerdoctor.facts.mpi import LaunchedAs

#: launcher, then the variables of rank, size, local rank and local size. More special ones come first: mpiexec inside
#: a Slurm job sets both its own and Slurm's.
_VARIABLES: Tuple[Tuple[str, str, str, str, str], ...] = (
    (
        "chainerdoctor",
        "CHAINERDOCTOR_RANK",
        "CHAINERDOCTOR_SIZE",
        "CHAINERDOCTOR_LOCAL_RANK",
        "CHAINERDOCTOR_LOCAL_SIZE",
    ),
    (
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"),
    ("Hydra", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
    ("Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_TASKS_ON_NODE"),
)


def identity(environ: Mapping[str, str]) -> Optional[LaunchedAs]:
    """Rank, size, local rank and local size, or ``None`` for a process that no launcher started.

    ``chainerdoctor``'s own variables carry the launcher's name in ``CHAINERDOCTOR_LAUNCHER`` (local or ssh).
    """
    for launcher, *names in _VARIABLES:
        rank, size, local_rank, local_size = (_number(environ.get(name)) for name in names)
        if rank is None or size is None:
            continue
        if launcher == "Slurm" and "SLURM_STEP_ID" not in environ:
            continue  # a batch script also has SLURM_PROCID=0; only a step was started by srun
        if launcher == "chainerdoctor":
            launcher = environ.get("CHAINERDOCTOR_LAUNCHER", "local")
        return LaunchedAs(launcher, rank, size, local_rank, local_size)
    return None


def _number(text: Optional[str]) -> Optional[int]:
    return int(text) if text is not None and text.isdigit() else None
