"""The hosts themselves: names, ssh, slow and delayed links, simulated GPUs and a small /dev/shm of single nodes, Slurm."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: Sends so many bytes to a node and waits for one back: prints the seconds.
TALK = """
import socket, sys, threading, time
role, address, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
if role == "serve":
    listener = socket.create_server((address, 5555)); print("ready", flush=True)
    while True:
        peer, _ = listener.accept()
        def answer(peer=peer):
            left = size
            while left: left -= len(peer.recv(min(left, 1 << 20)))
            peer.sendall(b"x")
        threading.Thread(target=answer, daemon=True).start()
peer = socket.create_connection((address, 5555))
start = time.monotonic(); peer.sendall(bytes(size)); peer.recv(1)
print(time.monotonic() - start)
"""


def transfer_s(hosts, node, size):
    server = subprocess.Popen(
        hosts.command(node, sys.executable, "-c", TALK, "serve", hosts.addresses[node], str(size)),
        stdout=subprocess.PIPE,
    )
    try:
        server.stdout.readline()
        talk = [sys.executable, "-c", TALK, "talk", hosts.addresses[node], str(size)]
        return min(float(hosts.run("head", *talk).stdout) for _ in range(3))
    finally:
        server.kill()
        server.wait()


def test_each_host_has_its_own_name_and_is_reached_by_ssh(four_hosts):
    for node in four_hosts.nodes:
        done = four_hosts.run("head", "ssh", node, "hostname; cat /proc/sys/kernel/hostname")
        assert done.stdout.split() == [node, node], done.stderr
    assert four_hosts.run("node1", "ssh", "node4", "hostname").stdout == "node4\n"
    import os

    assert os.uname().nodename not in four_hosts.nodes


def test_a_slow_link_is_slow_and_the_others_are_not(four_hosts):
    """4 MB at 50 Mbit/s need 0.64 s; the burst and the buffers let some of it through at once."""
    before = transfer_s(four_hosts, "node3", 4_000_000)
    four_hosts.limit_rate("node3", mbit=50)
    slow = transfer_s(four_hosts, "node3", 4_000_000)
    assert slow > max(0.5, 4 * before)
    assert transfer_s(four_hosts, "node2", 4_000_000) < slow / 2


def test_a_delayed_link_is_late_and_the_others_are_not(four_hosts, relay):
    four_hosts.delay("node4", ms=20, relay=relay)
    late = transfer_s(four_hosts, "node4", 1)
    assert late > 0.04  # there and back
    assert transfer_s(four_hosts, "node2", 1) < late / 2
    assert four_hosts.run("head", "ssh", "node4", "hostname").stdout == "node4\n"


def test_single_nodes_with_other_gpus_and_another_dev_shm(tmp_path):
    import hosts

    from chainerdoctor.simulate import environment

    if hosts.missing():
        pytest.skip(f"several hosts: {hosts.missing()}")
    environ = {}
    for node, driver in (("node1", "550.54.15"), ("node2", "470.82.01")):
        scenario = tmp_path / f"{node}.scn"
        scenario.write_text(f"gpus = 2\ndriver_version = {driver}\n")
        environ[node] = {**environment(scenario, ("nvml",)), "PYTHONPATH": str(ROOT)}
    with hosts.Hosts(tmp_path / "hosts", count=2, environ=environ, shm_mib={"node2": 64}) as two:
        code = "from chainerdoctor.adapters.nvml import open_nvml; print(open_nvml().driver_version())"
        seen = {
            node: two.run("head", "ssh", node, f"{sys.executable} -c '{code}'").stdout.strip() for node in two.nodes
        }
        sizes = {
            node: two.run("head", "ssh", node, "df -m --output=size /dev/shm").stdout.split()[-1] for node in two.nodes
        }
    assert seen == {"node1": "550.54.15", "node2": "470.82.01"}
    assert sizes == {"node1": "1024", "node2": "64"}


def test_nothing_is_left_behind(tmp_path):
    """Also when the tests are killed: the holders die with them."""
    import hosts

    if hosts.missing():
        pytest.skip(f"several hosts: {hosts.missing()}")
    code = (
        f"import sys, time; sys.path[:0] = [{str(Path(hosts.__file__).parent)!r}]\nfrom hosts import Hosts; from pathlib import Path\n"
        f"h = Hosts(Path({str(tmp_path)!r}), count=1).__enter__()\n"
        "import json; print(json.dumps([p.pid for p in [*h._holders.values(), *h._services]]), flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    pids = json.loads(child.stdout.readline())
    child.kill()
    child.wait()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and any(Path(f"/proc/{pid}").exists() for pid in pids):
        time.sleep(0.05)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


@pytest.fixture(scope="module")
def slurm(four_hosts):
    import slurm

    reason = slurm.missing()
    if reason:
        pytest.skip(f"Slurm: {reason}")
    made = slurm.Slurm(four_hosts)
    made.start()
    return made


def test_slurm_runs_on_four_nodes(slurm):
    done = slurm.run("srun", "-N4", "-n4", "hostname")
    assert sorted(done.stdout.split()) == ["node1", "node2", "node3", "node4"], done.stderr


def test_slurm_hands_out_gpus(slurm):
    done = slurm.run(
        "srun", "-N2", "-n4", "--gpus-per-task=2", "sh", "-c", "echo $(hostname) $SLURM_PROCID $CUDA_VISIBLE_DEVICES"
    )
    lines = [line.split() for line in done.stdout.splitlines()]
    assert len(lines) == 4, done.stderr
    assert {len(words[2].split(",")) for words in lines} == {2}


def test_sbatch(slurm, tmp_path):
    job, out = tmp_path / "job.sh", tmp_path / "job.out"
    job.write_text(f"#!/bin/sh\n#SBATCH -N4 -n4 -o {out}\nsrun hostname\necho end\n")
    assert "Submitted batch job" in slurm.run("sbatch", str(job)).stdout
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (out.exists() and "end" in out.read_text()):
        time.sleep(0.1)
    assert sorted(out.read_text().split()) == ["end", "node1", "node2", "node3", "node4"]


def test_a_drained_node_gives_its_reason(slurm):
    slurm.run("scontrol", "update", "nodename=node2", "state=drain", "reason=ECC errors")
    try:
        assert "ECC errors" in slurm.run("sinfo", "-R", "-h").stdout
        done = slurm.run("srun", "-N3", "-n3", "hostname")
        assert sorted(done.stdout.split()) == ["node1", "node3", "node4"]
    finally:
        slurm.run("scontrol", "update", "nodename=node2", "state=resume")
