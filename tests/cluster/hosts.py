"""Several hosts on one machine: a head and nodes, each with its own network, host name and mounts, and sshd on the nodes.

Every host is a set of Linux namespaces that lives as long as one holding process; a bridge in a namespace of its own joins
them. Nothing of it is seen outside: ending the holders ends everything, also after a crash of the tests (they die with
their parent). Needs root, and the programs in PROGRAMS.

    with Hosts(folder) as hosts:
        hosts.run("head", "ssh", "node2", "hostname")
        hosts.limit_rate("node3", mbit=200)
        hosts.delay("node4", ms=5)
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Dict, List, Mapping, Optional

PROGRAMS = ("ip", "tc", "nsenter", "unshare", "setpriv", "mount", "ssh", "ssh-keygen", "hostname")
SSHD = "/usr/sbin/sshd"
SUBNET = "10.99.0"
HEAD_ADDRESS = f"{SUBNET}.100"


def missing() -> str:
    """Why hosts cannot be set up here, in one line; "" if they can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    lacking = [name for name in PROGRAMS if not shutil.which(name)]
    if not os.access(SSHD, os.X_OK):
        lacking.append("sshd")
    if lacking:
        return f"not installed: {', '.join(lacking)} (Debian: apt-get install iproute2 util-linux openssh-server openssh-client)"
    tried = subprocess.run(
        ["unshare", "--net", "--uts", "--mount", "true"], stderr=subprocess.PIPE, text=True, check=False
    )
    return f"namespaces are refused: {tried.stderr.strip()}" if tried.returncode else ""


class HostsFailed(RuntimeError):
    """A command of the set-up failed; the message holds the command and what it said."""


def _must(*command: str) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise HostsFailed(f"{' '.join(command)}: {done.stdout.strip()}")
    return done.stdout


class Hosts:
    """A head and ``count`` nodes. ``environ`` gives variables to what sshd starts on a host, for instance a simulated GPU
    machine of its own; ``shm_mib`` gives a host a /dev/shm of that size."""

    def __init__(
        self,
        folder: Path,
        count: int = 4,
        environ: Optional[Mapping[str, Mapping[str, str]]] = None,
        shm_mib: Optional[Mapping[str, int]] = None,
    ) -> None:
        self.folder = folder
        self.nodes = [f"node{i + 1}" for i in range(count)]
        self.addresses = {"head": HEAD_ADDRESS, **{name: f"{SUBNET}.{i + 1}" for i, name in enumerate(self.nodes)}}
        self._environ = environ or {}
        self._shm_mib = shm_mib or {}
        self._holders: Dict[str, subprocess.Popen[bytes]] = {}
        self._services: List[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Hosts:
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write_files()
        self._hold("switch")
        self._in("switch", "ip", "link", "add", "br0", "type", "bridge")
        self._in("switch", "ip", "link", "set", "br0", "up")
        for name, address in self.addresses.items():
            self._hold(name)
            self._join(name, address)
            self._furnish(name)
        for name in self.addresses:
            self.serve(name, SSHD, "-D", "-e", "-f", str(self.folder / f"sshd_config.{name}"))
        for name in self.nodes:
            self._await_ssh(name)

    def _write_files(self) -> None:
        lines = ["127.0.0.1 localhost", *(f"{address} {name}" for name, address in self.addresses.items())]
        (self.folder / "hosts").write_text("\n".join(lines) + "\n")
        for key in ("host_key", "user_key"):
            if not (self.folder / key).exists():
                _must("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / key))
        shutil.copy(str(self.folder / "user_key.pub"), str(self.folder / "authorized_keys"))
        (self.folder / "authorized_keys").chmod(0o600)
        for name in self.addresses:
            setting = "".join(f' "{key}={value}"' for key, value in self._environ.get(name, {}).items())
            (self.folder / f"sshd_config.{name}").write_text(
                f"HostKey {self.folder}/host_key\nAuthorizedKeysFile {self.folder}/authorized_keys\nStrictModes no\n"
                f"PasswordAuthentication no\nUsePAM no\nPermitRootLogin yes\nMaxStartups 100:30:200\nPidFile none\n"
                + (f"SetEnv{setting}\n" if setting else "")
            )
        (self.folder / "ssh_config").write_text(
            f"Host *\n  User root\n  IdentityFile {self.folder}/user_key\n  StrictHostKeyChecking no\n"
            "  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n"
        )

    def _hold(self, name: str) -> None:
        """Make a host's namespaces, held by a process that dies with this one."""
        command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--uts", "--mount", "sleep", "infinity"]
        own = os.readlink("/proc/self/ns/net")
        holder = subprocess.Popen(command)
        self._holders[name] = holder
        deadline = time.monotonic() + 5
        while os.readlink(f"/proc/{holder.pid}/ns/net") == own or _program(holder.pid) != "sleep":
            if holder.poll() is not None or time.monotonic() > deadline:
                raise HostsFailed(f"the namespaces of {name} did not come up")
            time.sleep(0.005)
        self._in(name, "ip", "link", "set", "lo", "up")

    def _join(self, name: str, address: str) -> None:
        """A cable from the host's eth0 to a port of the switch."""
        holder, switch = str(self._holders[name].pid), str(self._holders["switch"].pid)
        cable = ["ip", "link", "add", "eth0", "netns", holder, "type", "veth", "peer", "name", name, "netns", switch]
        _must("nsenter", f"--net=/proc/{holder}/ns/net", *cable)
        self._in("switch", "ip", "link", "set", name, "master", "br0", "up")
        self._in(name, "ip", "address", "add", f"{address}/24", "dev", "eth0")
        self._in(name, "ip", "link", "set", "eth0", "up")

    def _furnish(self, name: str) -> None:
        self._in(name, "hostname", name)
        self._in(name, "mount", "--bind", str(self.folder / "hosts"), "/etc/hosts")
        self._in(name, "sh", "-c", "mkdir -p /run/sshd ~/.ssh && mount -t tmpfs -o mode=700 none ~/.ssh")
        self._in(name, "sh", "-c", f"cp {self.folder}/ssh_config ~/.ssh/config && chmod 600 ~/.ssh/config")
        size = self._shm_mib.get(name, 1024)
        self._in(name, "mount", "-t", "tmpfs", "-o", f"size={size}m", "none", "/dev/shm")

    def _await_ssh(self, name: str) -> None:
        for _ in range(100):
            if self.run("head", "ssh", "-o", "ConnectTimeout=2", name, "true").returncode == 0:
                return
            time.sleep(0.05)
        raise HostsFailed(f"sshd on {name} does not answer")

    def command(self, host: str, *command: str) -> List[str]:
        """The command line that runs a command on a host, for Popen."""
        return ["nsenter", "-t", str(self._holders[host].pid), "--net", "--uts", "--mount", "--wd=.", *command]

    def _in(self, host: str, *command: str) -> str:
        return _must(*self.command(host, *command))

    def run(
        self, host: str, *command: str, timeout: float = 60, environ: Optional[Mapping[str, str]] = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command on a host and wait for it."""
        return subprocess.run(
            self.command(host, *command),
            env={**os.environ, **(environ or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def serve(self, host: str, *command: str, environ: Optional[Mapping[str, str]] = None) -> subprocess.Popen[bytes]:
        """Start a service on a host; it is ended with the hosts."""
        with open(self.folder / f"{Path(command[0]).name}.{host}.log", "ab") as log:
            service = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *self.command(host, *command)],
                env={**os.environ, **(environ or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._services.append(service)
        return service

    def limit_rate(self, host: str, mbit: int) -> None:
        """Slow a host's link down, both ways."""
        shape = ["root", "tbf", "rate", f"{mbit}mbit", "burst", "64kb", "latency", "50ms"]
        self._in(host, "tc", "qdisc", "replace", "dev", "eth0", *shape)
        self._in("switch", "tc", "qdisc", "replace", "dev", host, *shape)

    def delay(self, host: str, ms: float, relay: Path) -> None:
        """Delay each packet of a host's link, both ways, with the relay program (delay.c; there may be no netem)."""
        holder, switch = (f"/proc/{self._holders[name].pid}/ns/net" for name in (host, "switch"))
        self._in(host, "ip", "link", "delete", "eth0")
        service = self.serve("switch", str(relay), holder, switch, f"d{host}", f"{ms}")
        for _ in range(200):
            up = self.run("switch", "ip", "link", "show", f"d{host}").returncode == 0
            if up and self.run(host, "ip", "link", "show", "eth0").returncode == 0:
                break
            if service.poll() is not None:
                raise HostsFailed(
                    f"the relay of {host} ended: {(self.folder / (relay.name + '.switch.log')).read_text()}"
                )
            time.sleep(0.02)
        self._in("switch", "ip", "link", "set", f"d{host}", "master", "br0", "up")
        self._in(host, "ip", "address", "add", f"{self.addresses[host]}/24", "dev", "eth0")
        self._in(host, "ip", "link", "set", "eth0", "up")
        # the new interface has another hardware address: neighbours that remember the old one would wait for long
        for name in self.addresses:
            self._in(name, "ip", "neighbour", "flush", "all")

    def close(self) -> None:
        """End every process in the hosts' namespaces, and with them the namespaces."""
        networks = set()
        for holder in self._holders.values():
            try:
                networks.add(os.readlink(f"/proc/{holder.pid}/ns/net"))
            except OSError:
                continue
        networks.discard(os.readlink("/proc/self/ns/net"))
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and os.readlink(f"/proc/{entry}/ns/net") in networks:
                    os.kill(int(entry), signal.SIGKILL)
            except OSError:  # it has ended meanwhile
                continue
        for process in (*self._services, *self._holders.values()):
            process.kill()
            process.wait()
        self._services.clear()
        self._holders.clear()


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
