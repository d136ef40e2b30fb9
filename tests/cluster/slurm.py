"""A real Slurm on the hosts of hosts.py: slurmctld on the head, a slurmd with four GPUs on each node."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from typing import Callable, List

from hosts import HEAD_ADDRESS, Hosts, HostsFailed

PROGRAMS = ("slurmctld", "slurmd", "munged", "srun", "sbatch", "sinfo")


def missing() -> str:
    """Why Slurm cannot be set up here, in one line; "" if it can."""
    path = os.environ.get("PATH", "") + ":/usr/sbin"
    lacking = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    return f"not installed: {', '.join(lacking)} (Debian: apt-get install slurm-wlm munge)" if lacking else ""


class Slurm:
    """Slurm on running hosts; it ends with them."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self.folder = hosts.folder / "slurm"
        self.environ = {
            "SLURM_CONF": str(self.folder / "slurm.conf"),
            "PATH": os.environ.get("PATH", "") + ":/usr/sbin",
        }

    def start(self) -> None:
        """Start it, and wait until every node is idle.

        Raises:
            HostsFailed: a node did not come up; the message quotes the controller's log.
        """
        for name in ("state", "devices", *(f"spool/{node}" for node in self.hosts.nodes)):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._write_files()
        self.hosts.serve("head", "munged", "--foreground", "--force", *self._munge_options(), environ=self.environ)
        self._await(lambda: (self.folder / "munge.socket").exists(), "munged")
        self.hosts.serve("head", "slurmctld", "-D", "-f", self.environ["SLURM_CONF"], environ=self.environ)
        for node in self.hosts.nodes:
            # pmix keeps files under one name on all nodes of a job, and these nodes share a file system
            own = self.folder / "pmix" / node
            own.mkdir(parents=True, exist_ok=True)
            done = self.hosts.run(
                node, "sh", "-c", f"mkdir -p {self.folder}/pmix-here && mount --bind {own} {self.folder}/pmix-here"
            )
            if done.returncode:
                raise HostsFailed(done.stderr)
            self.hosts.serve(node, "slurmd", "-D", "-f", self.environ["SLURM_CONF"], "-N", node, environ=self.environ)
        self._await(self._all_idle, "slurmd on every node")

    def run(self, *command: str, timeout: float = 120, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run srun, sbatch or sinfo on the head."""
        return self.hosts.run("head", *command, timeout=timeout, environ={**self.environ, **environ})

    def _all_idle(self) -> bool:
        nodes = self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").stdout.split()
        return sorted(nodes) == sorted(self.hosts.nodes)

    def _await(self, ready: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 30
        while not ready():
            if time.monotonic() > deadline:
                log = self.hosts.folder / "slurmctld.head.log"
                tail = log.read_text()[-500:] if log.exists() else ""
                raise HostsFailed(f"{what} did not come up: {tail}")
            time.sleep(0.1)

    def _munge_options(self) -> List[str]:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        names = {"key-file": key, "socket": self.folder / "munge.socket", "pid-file": self.folder / "munge.pid"}
        names.update({"log-file": self.folder / "munge.log", "seed-file": self.folder / "munge.seed"})
        return [f"--{name}={path}" for name, path in names.items()]

    def _write_files(self) -> None:
        for index in range(4):
            device = self.folder / "devices" / f"nvidia{index}"
            if not device.exists():
                os.mknod(
                    str(device), stat.S_IFCHR | 0o600, os.makedev(1, 3)
                )  # as /dev/null: gres.conf wants device files
        nodes = "\n".join(
            f"NodeName={node} NodeAddr={self.hosts.addresses[node]} Port=17000 CPUs=4 RealMemory=1000 Gres=gpu:a100:4"
            for node in self.hosts.nodes
        )
        first_last = f"{self.hosts.nodes[0]},{','.join(self.hosts.nodes[1:])}"
        (self.folder / "gres.conf").write_text(
            f"NodeName={first_last} Name=gpu Type=a100 File={self.folder}/devices/nvidia[0-3]\n"
        )
        (self.folder / "mpi.conf").write_text(f"PMIxCliTmpDirBase={self.folder}/pmix-here\nPMIxDirectConn=true\n")
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (self.folder / "slurm.conf").write_text(
            f"""ClusterName=namespaces
SlurmctldHost=head({HEAD_ADDRESS})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={self.folder}/munge.socket
SlurmctldPort=16817
SlurmctldPidFile={self.folder}/slurmctld.pid
SlurmdPidFile={self.folder}/slurmd.%n.pid
SlurmdSpoolDir={self.folder}/spool/%n
StateSaveLocation={self.folder}/state
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
GresTypes=gpu
KillWait=5
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
        )
