"""check-cluster over four hosts: each node's fault is found on that node, and healthy hosts yield nothing."""

import importlib.util
import json
import os
import sys
import time
from pathlib import Path

import pytest

from chainerdoctor.simulate import environment

ROOT = Path(__file__).resolve().parents[2]
HEALTHY = "gpus = 2\n[gpu *]\nmemory_used = 300MiB\n"


#: Hosts of the rig share their kernel's memory, which MPICH would use between them.
NETWORK = {"FI_PROVIDER": "tcp", "MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"}


def check(made, *arguments, launcher="ssh", environ=None):
    """Run check-cluster on the head over all nodes: (report, seconds)."""
    began_s = time.monotonic()
    path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/bin"
    done = made.run(
        "head", sys.executable, "-m", "chainerdoctor", "check-cluster", "--hosts", ",".join(made.nodes),
        "--launcher", launcher, "--format", "json", *arguments,
        timeout=180, environ={"PYTHONPATH": str(ROOT), "PATH": path, **NETWORK, **(environ or {})},
    )  # fmt: skip
    assert done.returncode in (0, 1, 3), done.stderr
    return json.loads(done.stdout), time.monotonic() - began_s


def found(report):
    """code → where of each finding of the families of doctor, host, GPU and fabric."""
    return {
        verdict["code"]: [finding["where"] for finding in verdict["findings"]]
        for verdict in report["verdicts"]
        if verdict["findings"]
    }


@pytest.fixture
def cluster(tmp_path):
    """cluster({node: (scenario, libraries)}, shm_mib) -> a context with four hosts."""
    import hosts

    reason = hosts.missing()
    if reason:
        pytest.skip(f"several hosts: {reason}")

    def make(scenarios, libraries=("nvml",), shm_mib=None):
        environ = {}
        for number in range(1, 5):
            node = f"node{number}"
            path = tmp_path / f"{node}.scn"
            path.write_text(scenarios.get(node, HEALTHY))
            shared = tmp_path / f"shared-{node}"
            shared.mkdir(exist_ok=True)
            python_path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
            environ[node] = {**environment(path, libraries, shared=shared), "PYTHONPATH": python_path}
        return hosts.Hosts(tmp_path / "hosts", count=4, environ=environ, shm_mib=shm_mib)

    return make


#: All nodes are containers on one machine, which has its own limits: what they say of it is the same everywhere.
SELECT = ("--select", "CD0,CD102,CD2,CD3")


def test_each_fault_is_found_on_its_node_and_nothing_else(cluster):
    scenarios = {
        "node2": "driver_version = 535.104.05\n" + HEALTHY,
        "node4": HEALTHY + "[call nvmlDeviceGetRemappedRows gpu 1]\nblock = forever\n",
    }
    with cluster(scenarios, shm_mib={"node3": 64}) as made:
        report, _ = check(made, *SELECT)
    assert found(report) == {"CD001": ["node4"], "CD102": ["node3"], "CD201": ["node2"]}


#: Those, and what is measured and summed between the nodes; without the speeds of GPUs, since the simulated ones of
#: four hosts copy and compute on this machine's few cores.
BETWEEN = ("--select", "CD0,CD102,CD2,CD3,CD412", "--ignore", "CD236,CD237,CD238,CD239")


@pytest.fixture
def with_cupy():
    if importlib.util.find_spec("cupy") is None:
        pytest.skip("NCCL between hosts: this Python has no CuPy (run with tests/simulate/packages/environments.sh's)")


def test_nccl_of_all_hosts_meets_and_sums(cluster, with_cupy):
    with cluster({}, libraries=("nvml", "nccl", "cuda")) as made:
        report, _ = check(made, *BETWEEN, launcher="mpiexec", environ={"NCCL_SOCKET_IFNAME": "eth0"})
    assert found(report) == {}
    status = {verdict["code"]: verdict["status"] for verdict in report["verdicts"]}
    assert {status[code] for code in ("CD324", "CD325", "CD326", "CD327")} == {"passed"}


def test_nccl_that_waits_at_the_loopback_address_is_found_from_every_other_host(cluster, with_cupy):
    with cluster({}, libraries=("nvml", "nccl", "cuda")) as made:
        report, _ = check(made, "--select", "CD324", launcher="mpiexec", environ={"NCCL_SOCKET_IFNAME": "lo"})
    assert found(report) == {"CD324": ["node2/rank 1", "node3/rank 2", "node4/rank 3"]}


def test_another_nccl_on_one_node(cluster, with_cupy):
    with cluster({"node3": "nccl_version = 21805\n" + HEALTHY}, libraries=("nvml", "nccl", "cuda")) as made:
        report, _ = check(made, *BETWEEN)
    assert found(report) == {"CD306": ["node3/rank 2"]}


def test_twenty_healthy_runs_yield_nothing(cluster):
    with cluster({}) as made:
        for _ in range(20):
            report, _ = check(made, *SELECT)
            assert found(report) == {}


def test_a_node_behind_a_slow_link_is_named(cluster):
    """50 Mbit/s for one node; the others share a virtual switch that carries hundreds of times more."""
    with cluster({}) as made:
        made.limit_rate("node3", 50)
        report, _ = check(made, *BETWEEN, launcher="mpiexec")
    assert found(report) == {"CD327": ["node3"]}


def test_twenty_healthy_runs_over_mpi_yield_nothing(cluster):
    with cluster({}) as made:
        for _ in range(20):
            report, _ = check(made, *BETWEEN, launcher="mpiexec")
            assert found(report) == {}
