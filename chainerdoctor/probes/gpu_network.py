"""How GPUs and network devices are placed on PCI Express, and whether they may exchange data directly (sysfs)."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts import ABSENT, Fact
from chainerdoctor.facts.fabric import NicPath, PeerMemory
from chainerdoctor.host import Host
from chainerdoctor.probes import NODE, Probe, Unseen

_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


def gpu_network(host: Host) -> Iterator[Fact]:
    """The path of every pair of GPU and network or RDMA device, then what GPUDirect RDMA needs."""
    gpus = [path for path in host.glob("/sys/bus/pci/devices/*") if _is_gpu(host, path)]
    if not gpus:
        raise Unseen(ABSENT, "no NVIDIA GPU among the PCI devices")
    nics: Dict[Tuple[str, bool], str] = {}
    for folder, rdma in (("infiniband", True), ("net", False)):
        for path in host.glob(f"/sys/class/{folder}/*"):
            place = host.real_path(f"{path}/device")
            if _chain(place):  # virtual interfaces have no PCI device behind them
                nics[path.rsplit("/", 1)[1], rdma] = place
    for gpu in gpus:
        for (name, rdma), place in nics.items():
            bus_id = gpu.rsplit("/", 1)[1].upper()
            yield NicPath(bus_id, name, rdma, _path(host, host.real_path(gpu), place))
    yield PeerMemory(
        peermem=bool(host.glob("/sys/module/nvidia_peermem*") or host.glob("/sys/kernel/mm/memory_peers/nv_mem*")),
        open_modules="Open Kernel Module" in _read(host, "/proc/driver/nvidia/version"),
    )


def _is_gpu(host: Host, path: str) -> bool:
    # Class 0x0300 is a display controller and 0x0302 a 3D controller; NVIDIA's audio and NVSwitch parts are others.
    return _read(host, f"{path}/vendor") == "0x10de" and _read(host, f"{path}/class")[:6] in ("0x0300", "0x0302")


def _read(host: Host, path: str) -> str:
    try:
        return host.read(path).strip()
    except OSError:
        return ""


def _chain(place: str) -> List[str]:
    """The host bridge and every PCI address from there down to the device."""
    parts = place.split("/")
    roots = [part for part in parts if re.fullmatch(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", part)]
    addresses = [part for part in parts if _ADDRESS.fullmatch(part)]
    return [*roots, *addresses] if addresses else []


def _path(host: Host, one: str, other: str) -> str:
    """nvidia-smi's name of the way between two PCI devices (nvidia-smi topo, legend): PIX at most one bridge, PXB
    several without the host bridge, PHB the host bridge, NODE within a NUMA node, SYS between NUMA nodes."""
    ours, theirs = _chain(one), _chain(other)
    shared = 0
    while shared < min(len(ours), len(theirs)) and ours[shared] == theirs[shared]:
        shared += 1
    # shared counts the host bridge and, from 2 on, the root port: below one root port traffic need not go through the CPU.
    if shared >= 2:
        # The bridges between the two, each switch counting once: its upstream port is the last thing they share.
        bridges = max(len(ours), len(theirs)) - shared - 1
        return "PIX" if bridges <= 1 else "PXB"
    if shared == 1:
        return "PHB"
    nodes = [_read(host, f"{place}/numa_node") for place in (one, other)]
    # -1 (or nothing): this machine tells no nodes apart.
    told = all(node.isdigit() for node in nodes)
    return "SYS" if told and nodes[0] != nodes[1] else "NODE"


PROBES = (Probe("gpu_network", NODE, 5.0, (NicPath, PeerMemory), gpu_network),)
