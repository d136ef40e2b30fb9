"""The operating system, processors, memory and limits of a node."""

from __future__ import annotations

import re
from typing import Iterator, Optional

from chainerdoctor.facts import ABSENT, Fact
from chainerdoctor.facts.host import (
    AccessControl,
    Boot,
    HostMemory,
    HugePages,
    Iommu,
    OperatingSystem,
    Processors,
    ResourceLimit,
    SharedMemory,
)
from chainerdoctor.host import Host
from chainerdoctor.probes import NODE, RANK, Probe, Unseen


def operating_system(host: Host) -> Iterator[Fact]:
    """Kernel, distribution and container."""
    release = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', _read_or(host, "/etc/os-release", ""), re.M))
    yield OperatingSystem(
        hostname=host.read("/proc/sys/kernel/hostname").strip(),
        kernel=host.read("/proc/sys/kernel/osrelease").strip(),
        distro=release.get("PRETTY_NAME", "unknown"),
        architecture=_read_or(host, "/proc/sys/kernel/arch", "").strip() or _machine(),
        container=_container(host),
    )
    yield Boot(host.read("/proc/sys/kernel/random/boot_id").strip())


def _machine() -> str:
    import platform

    return platform.machine()


def _container(host: Host) -> Optional[str]:
    if host.glob("/.dockerenv"):
        return "docker"
    if host.glob("/run/.containerenv"):
        return "podman"
    for name, variable in (("singularity", "SINGULARITY_CONTAINER"), ("apptainer", "APPTAINER_CONTAINER")):
        if variable in host.environ:
            return name
    if "KUBERNETES_SERVICE_HOST" in host.environ:
        return "kubernetes"
    return None


def _read_or(host: Host, path: str, otherwise: str) -> str:
    try:
        return host.read(path)
    except OSError:
        return otherwise


def processors(host: Host) -> Iterator[Fact]:
    """CPU model and counts from /proc/cpuinfo and sysfs."""
    text = host.read("/proc/cpuinfo")
    models = re.findall(r"^(?:model name|Processor|cpu model)\s*:\s*(.+)$", text, re.M)
    parts = re.findall(r"^CPU part\s*:\s*(\S+)$", text, re.M)
    yield Processors(
        model=models[0] if models else (f"ARM part {parts[0]}" if parts else "unknown"),
        sockets=len(set(re.findall(r"^physical id\s*:\s*(\d+)$", text, re.M))) or 1,
        logical=len(re.findall(r"^processor\s*:", text, re.M)) or 1,
        usable=host.usable_processors(),
        numa_nodes=len(host.glob("/sys/devices/system/node/node[0-9]*")) or 1,
    )


def memory(host: Host) -> Iterator[Fact]:
    """Memory of the machine and of the cgroup."""
    table = {name: int(kib) * 1024 for name, kib in re.findall(r"^(\w+):\s+(\d+) kB", host.read("/proc/meminfo"), re.M)}
    yield HostMemory(table["MemTotal"], table.get("MemAvailable", table["MemFree"]), _memory_limit(host))


def _memory_limit(host: Host) -> Optional[int]:
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _read_or(host, path, "").strip()
        # cgroup v1 says "no limit" by a number near 2^63, rounded down to a page.
        if text.isdigit() and int(text) < 2**60:
            return int(text)
    return None


def shared_memory(host: Host) -> Iterator[Fact]:
    """Size of /dev/shm."""
    try:
        size, free = host.space("/dev/shm")
    except FileNotFoundError:
        raise Unseen(ABSENT, "there is no /dev/shm") from None
    yield SharedMemory("/dev/shm", size, free)


def limits(host: Host) -> Iterator[Fact]:
    """The ulimits that NCCL, InfiniBand and MPI run into."""
    for name in ("memlock", "nofile", "stack"):
        soft, hard = host.limit(name)
        yield ResourceLimit(name, soft, hard)


def huge_pages(host: Host) -> Iterator[Fact]:
    """Transparent huge pages."""
    try:
        text = host.read("/sys/kernel/mm/transparent_hugepage/enabled")
    except FileNotFoundError:
        raise Unseen(ABSENT, "this kernel has no transparent huge pages") from None
    chosen = re.search(r"\[(\w+)\]", text)
    yield HugePages(chosen.group(1) if chosen else text.strip())


def pci_isolation(host: Host) -> Iterator[Fact]:
    """IOMMU and, where configuration space may be read (root), ACS of the PCI bridges."""
    words = _read_or(host, "/proc/cmdline", "").split()
    yield Iommu(len(host.glob("/sys/kernel/iommu_groups/*")), "iommu=pt" in words)
    for folder in host.glob("/sys/bus/pci/devices/*"):
        # Class 0x0604 is a PCI-to-PCI bridge: root ports and switch ports, which is where ACS acts.
        if _read_or(host, f"{folder}/class", "").startswith("0x0604"):
            config = host.read_bytes(f"{folder}/config")
            control = _acs_control(config)
            if control is not None:
                yield AccessControl(folder.rsplit("/", 1)[1], bool(control & 1))


def _acs_control(config: bytes) -> Optional[int]:
    """The ACS control register, or ``None`` where the bridge has none or only 64 bytes may be read.

    Extended capabilities start at 0x100: id in bits 0–15, offset of the next in bits 20–31; ACS is id 0x000D with its
    control register at +6 (PCI Express Base Specification, "Access Control Services").
    """
    offset, seen = 0x100, set()
    while 0x100 <= offset <= len(config) - 8 and offset not in seen:
        seen.add(offset)
        header = int.from_bytes(config[offset : offset + 4], "little")
        if header & 0xFFFF == 0x000D:
            return int.from_bytes(config[offset + 6 : offset + 8], "little")
        offset = header >> 20
    return None


PROBES = (
    Probe("operating_system", NODE, 5.0, (OperatingSystem, Boot), operating_system),
    Probe("processors", NODE, 5.0, (Processors,), processors),
    Probe("memory", NODE, 5.0, (HostMemory,), memory),
    Probe("shared_memory", NODE, 5.0, (SharedMemory,), shared_memory),
    Probe("limits", RANK, 5.0, (ResourceLimit,), limits),
    Probe("huge_pages", NODE, 5.0, (HugePages,), huge_pages),
    Probe("pci_isolation", NODE, 5.0, (Iommu, AccessControl), pci_isolation),
)
