"""check-cluster's bars: start-up, a whole local run, and judging a snapshot of a large cluster."""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List

from chainerdoctor import snapshot as snapshots
from chainerdoctor.facts import Fact
from chainerdoctor.facts.fabric import NetworkInterface, NetworkSurvey, RdmaPort
from chainerdoctor.facts.gpu import Gpu, GpuDriver
from chainerdoctor.facts.host import Boot, HostMemory, OperatingSystem, Processors, ResourceLimit, SharedMemory
from chainerdoctor.facts.mpi import LaunchedAs, MpiLibrary, MpiWorld, RankOutcome
from chainerdoctor.facts.stack import (
    ChainerCuda,
    Distribution,
    EnvironmentSurvey,
    EnvironmentVariable,
    ImportOutcome,
    Interpreter,
    MappedLibrary,
    NcclVersion,
    PackageSurvey,
)
from chainerdoctor.judging import report_on
from chainerdoctor.rules import all_rules
from chainerdoctor.snapshot import Sighting, Snapshot
from tests.bench.interleaved import command, paired

BARE_CLICK = "import click\n@click.command()\n@click.option('--x')\ndef main(x): 'Say something.'\nmain(['--help'])"


def measure() -> Dict[str, Any]:
    """Every bar of this file with its figure."""
    python, scripts = sys.executable, os.path.dirname(sys.executable)
    environ = {**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"}
    start = paired(command([f"{scripts}/chainerdoctor", "--help"]), command([python, "-c", BARE_CLICK]), runs=21)
    peer = [f"{scripts}/mpiexec", "-n", "2", python, "-c", "import chainer, mpi4py.MPI"]
    whole = paired(
        command([f"{scripts}/chainerdoctor", "check-cluster", "-n", "2"], env=environ),
        command(peer, env=environ),
        runs=11,
    )
    small, large = judging_s(1024), judging_s(4096)
    return {
        "start-up of --help against a bare click program": {**start, "bar": "ratio <= 2"},
        "check-cluster -n 2 against mpiexec -n 2 importing the stack": {**whole, "bar": "ratio <= 2.5"},
        "judging 1,024 nodes x 8 ranks": {"ours_s": small, "bar": "<= 3 s"},
        "judging 4,096 nodes against 1,024": {"ours_s": large, "ratio": large / small, "bar": "ratio <= 4.5"},
    }


def judging_s(nodes: int, runs: int = 3) -> float:
    """Best seconds of ``runs`` for reading and judging a snapshot of so many nodes with 8 ranks each."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cluster.json"
        path.write_text(synthetic(nodes).dumps())
        took: List[float] = []
        for _ in range(runs):
            began = time.perf_counter()
            report = report_on(snapshots.load(str(path)), all_rules(), "bench")
            took.append(time.perf_counter() - began)
        # The two faults that were put in have to be found, or the time would be that of doing nothing.
        assert {"CD201", "CD523"} <= {verdict.code for verdict in report.found()}
    return min(took)


def synthetic(nodes: int, ranks_per_node: int = 8) -> Snapshot:
    """A healthy cluster but for one node with another driver and one rank with another NumPy."""

    def entries() -> Iterator[Sighting[Fact]]:
        for node in range(nodes):
            for fact in _node_facts(node):
                yield Sighting(f"node{node:04}", None, "bench", 0.0, 0.0, fact)
            for local in range(ranks_per_node):
                rank = node * ranks_per_node + local
                for fact in _rank_facts(rank, nodes * ranks_per_node, local, ranks_per_node):
                    yield Sighting(f"node{node:04}", rank, "bench", 0.0, 0.0, fact)

    return Snapshot(entries(), command="bench", taken_at="2026-01-01T00:00:00Z", tool="0.1.0")


def _node_facts(node: int) -> Iterator[Fact]:
    yield OperatingSystem(f"node{node:04}", "5.15.0-91-generic", "Ubuntu 22.04.4 LTS", "x86_64", None)
    yield Boot(f"boot-{node}")
    yield Processors("AMD EPYC 7763 64-Core Processor", 2, 128, 128, 8)
    yield HostMemory(2**40, 2**39, None)
    yield SharedMemory("/dev/shm", 2**39, 2**39)
    yield GpuDriver("535.183.01" if node == 77 else "550.54.15", (12, 4), 8)
    for gpu in range(8):
        yield Gpu(gpu, "NVIDIA H100 80GB HBM3", f"GPU-{node}-{gpu}", 80 * 2**30, (9, 0), f"0000:{gpu:02x}:00.0")
    yield NetworkInterface("lo", 1, True, True, "loopback", 65536, None, ("127.0.0.1",))
    yield NetworkInterface("eth0", 2, True, False, "ethernet", 9000, 100000, (f"10.0.{node // 250}.{node % 250}",))
    for port in range(8):
        yield RdmaPort(f"mlx5_{port}", 1, "ACTIVE", "LinkUp", 400.0, "InfiniBand")
    yield NetworkSurvey(2, 8)


def _rank_facts(rank: int, size: int, local: int, local_size: int) -> Iterator[Fact]:
    site = "/env/lib/python3.11/site-packages"
    yield LaunchedAs("Slurm", rank, size, local, local_size)
    yield MpiLibrary("Open MPI", "4.1.6", "/opt/openmpi/lib/libmpi.so.40", "4.1.2")
    yield MpiWorld(rank, size, "n", "multiple", True, 0.5)
    yield Interpreter("/env/bin/python", "3.11.7", "CPython", "ab" * 32)
    numpy = "1.22.4" if rank == 555 else "1.23.5"
    for name, version in (("chainer", "7.8.1"), ("cupy-cuda12x", "13.6.0"), ("numpy", numpy), ("mpi4py", "4.1.2")):
        yield Distribution(name, version, site)
    yield PackageSurvey(60)
    for module in ("numpy", "cupy", "cupy.cuda.nccl", "chainer", "chainermn"):
        yield ImportOutcome(module, True, "1", "", 0.1)
    yield ChainerCuda(True, True, "")
    for library in ("libcudart", "libcublas", "libcudnn", "libnccl", "libnvrtc", "libcuda"):
        yield MappedLibrary(library, f"/env/{library}.so", "12.4", "cd" * 20)
    yield NcclVersion("loaded", "2.21.5")
    for name in ("memlock", "nofile", "stack"):
        yield ResourceLimit(name, None if name == "memlock" else 1048576, None)
    for name in ("NCCL_SOCKET_IFNAME", "NCCL_DEBUG", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"):
        yield EnvironmentVariable(name, "eth0")
    yield EnvironmentSurvey(4)
    yield RankOutcome(rank, "complete", "")


if __name__ == "__main__":
    import json

    print(json.dumps(measure(), indent=2))
