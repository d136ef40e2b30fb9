"""ChainerMN pure_nccl over four hosts with a simulated GPU each, started by Slurm and by mpiexec over ssh."""

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRAIN = str(ROOT / "tests" / "simulate" / "packages" / "train.py")
#: Each host counts the memory of its own GPUs; /dev/shm is each host's own.
ON_HOST = 'mkdir -p /dev/shm/gpus; export CHAINERDOCTOR_SIM_SHM=/dev/shm/gpus; exec "$0" "$@"'


@pytest.fixture(scope="module")
def python():
    folder = os.environ.get("CHAINERDOCTOR_SIMULATE_ENVIRONMENTS")
    if not folder:
        pytest.skip(
            "training on hosts: CHAINERDOCTOR_SIMULATE_ENVIRONMENTS is not set (make test-simulate makes the environments)"
        )
    return str(Path(folder) / "mpich" / "bin" / "python")


@pytest.fixture
def gpus(tmp_path):
    from chainerdoctor.simulate import environment

    scenario = tmp_path / "one.scn"
    scenario.write_text("gpus = 1\n[gpu *]\nmemory_total = 1GiB\n")
    variables = environment(scenario, ("nvml", "nccl", "cuda"))
    # MPICH would talk through shared memory, as the hosts share their kernel
    network = {
        "NCCL_SOCKET_IFNAME": "eth0",
        "FI_PROVIDER": "tcp",
        "MPIR_CVAR_CH4_NETMOD": "ofi",
        "MPIR_CVAR_NOLOCAL": "1",
    }
    return {**variables, **network}


def check(done):
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert len(result["losses"]) == 4
    assert len(set(result["sums"])) == 1
    assert all("cupy:0" in device for device in result["devices"])
    assert result["losses"][0][-1] < result["losses"][0][0]


def test_under_slurm(four_hosts, python, gpus):
    import slurm

    reason = slurm.missing()
    if reason:
        pytest.skip(f"Slurm: {reason}")
    made = slurm.Slurm(four_hosts)
    made.start()
    launch = ["srun", "--mpi=pmi2", "-N4", "-n4", "--gpus-per-task=1", "sh", "-c", ON_HOST]
    check(made.run(*launch, python, TRAIN, "pure_nccl", "gpu", timeout=300, **gpus))


def test_under_mpiexec_over_ssh(four_hosts, python, gpus):
    mpiexec = str(Path(python).with_name("mpiexec"))
    launch = [mpiexec, "-launcher", "ssh", "-hosts", ",".join(four_hosts.nodes), "-n", "4", "-ppn", "1", "-genvall"]
    check(
        four_hosts.run(
            "head", *launch, "sh", "-c", ON_HOST, python, TRAIN, "pure_nccl", "gpu", timeout=300, environ=gpus
        )
    )
