"""Who am I among the ranks? From each launcher's environment (names as their documentation gives them)."""

import pytest

from chainerdoctor.launch.identity import identity

HYDRA = {"PMI_RANK": "3", "PMI_SIZE": "8", "MPI_LOCALRANKID": "1", "MPI_LOCALNRANKS": "2"}
OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "3",
    "OMPI_COMM_WORLD_SIZE": "8",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
SLURM = {"SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "1", "SLURM_STEP_ID": "0"}


@pytest.mark.parametrize(("environ", "launcher"), [(HYDRA, "Hydra"), (OPEN_MPI, "Open MPI"), (SLURM, "Slurm")])
def test_launchers(environ, launcher) -> None:
    told = identity(environ)
    assert told is not None
    assert (told.launcher, told.rank, told.size, told.local_rank) == (launcher, 3, 8, 1)


def test_mpiexec_inside_a_slurm_job_is_mpiexecs() -> None:
    told = identity({**SLURM, "SLURM_PROCID": "0", **HYDRA})
    assert told is not None
    assert told.launcher == "Hydra"


def test_batch_script_is_no_rank() -> None:
    assert identity({"SLURM_PROCID": "0", "SLURM_NTASKS": "8", "SLURM_JOB_ID": "1"}) is None


@pytest.mark.parametrize("environ", [{}, {"PMI_RANK": "x", "PMI_SIZE": "2"}, {"PMI_RANK": "1"}, {"PMI_SIZE": "4"}])
def test_no_launcher(environ) -> None:
    assert identity(environ) is None
