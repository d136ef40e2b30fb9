"""ChainerMN on simulated GPUs under both MPI wheels, against the same training on the CPU."""

import json
from pathlib import Path

import pytest

TRAIN = str(Path(__file__).with_name("train.py"))
FOUR = "gpus = 4\n[gpu *]\nmemory_total = 2GiB\n"


def train(made, programs, mpi, *arguments, libraries=True, ranks=4):
    launch = [programs("mpiexec", mpi), "-n", str(ranks)]
    if mpi == "openmpi":
        launch[1:1] = ["--oversubscribe"]
    command = [*launch, programs("python", mpi), TRAIN, *arguments]
    if libraries:
        return made.run(*command, timeout=600)
    import subprocess

    return subprocess.run(command, capture_output=True, text=True, timeout=600)


def result(done):
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def largest_difference(one, other):
    return max(abs(a - b) / abs(b) for x, y in zip(one, other) for a, b in zip(x, y))


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_pure_nccl_trains_on_four_gpus_as_on_the_cpu(machine, programs, mpi):
    made = machine(FOUR, ("nvml", "nccl", "cuda"))
    gpu = result(train(made, programs, mpi, "pure_nccl", "gpu"))
    cpu = result(train(made, programs, mpi, "naive", libraries=False))
    assert [device[-1] for device in gpu["devices"]] == ["0", "1", "2", "3"]
    assert all("cupy" in device for device in gpu["devices"])
    assert len(set(gpu["sums"])) == 1  # parameters are the same on every rank, to the bit
    assert largest_difference(gpu["losses"], cpu["losses"]) < 1e-4
    assert gpu["losses"][0][-1] < gpu["losses"][0][0]


def test_one_flipped_bit_shows_in_the_losses(machine, programs):
    """The twin: the comparison above sees a fault. Operation 5 is one of the eight of this run."""
    made = machine(FOUR + "[rank 2]\nflip_at = 5\nflip_element = 5\nflip_bit = 30\n", ("nvml", "nccl", "cuda"))
    healthy = machine(FOUR, ("nvml", "nccl", "cuda"))
    wrong = result(train(made, programs, "mpich", "pure_nccl", "gpu"))
    right = result(train(healthy, programs, "mpich", "pure_nccl", "gpu"))
    assert len(set(right["sums"])) == 1
    assert wrong["sums"] != right["sums"]


def test_an_nccl_failure_ends_every_rank(machine, programs):
    made = machine(FOUR + "[call ncclAllReduce rank 1]\nerror = system_error\nat = 2\n", ("nvml", "nccl", "cuda"))
    done = train(made, programs, "mpich", "pure_nccl", "gpu")
    assert done.returncode != 0
    assert "NCCL_ERROR_UNHANDLED_SYSTEM_ERROR" in done.stderr or "NCCL_ERROR" in done.stderr
