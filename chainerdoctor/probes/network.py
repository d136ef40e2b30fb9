"""Network interfaces and RDMA ports from sysfs."""

from __future__ import annotations

import re
from typing import Iterator, Optional

from chainerdoctor.facts import Fact
from chainerdoctor.facts.fabric import NetworkInterface, NetworkSurvey, RdmaPort
from chainerdoctor.host import Host
from chainerdoctor.probes import NODE, Probe

#: ARPHRD_* of linux/if_arp.h: the hardware types that /sys/class/net/*/type holds.
_TYPES = {"1": "ethernet", "32": "infiniband", "772": "loopback"}


def network(host: Host) -> Iterator[Fact]:
    """Every interface in the kernel's order, then every RDMA port."""
    addresses = host.addresses()
    interfaces = [_interface(host, path, addresses.get(path.rsplit("/", 1)[1], [])) for path in _folders(host)]
    yield from sorted(interfaces, key=lambda interface: interface.index)
    ports = list(_rdma_ports(host))
    yield from ports
    yield NetworkSurvey(len(interfaces), len(ports))


def _folders(host: Host) -> Iterator[str]:
    for path in host.glob("/sys/class/net/*"):
        # bonding_masters and the like are files beside the interfaces.
        if host.glob(f"{path}/ifindex"):
            yield path


def _interface(host: Host, path: str, addresses: list[str]) -> NetworkInterface:
    def number(name: str) -> Optional[int]:
        try:
            text = host.read(f"{path}/{name}").strip()
        except OSError:
            return None  # an interface that is down refuses to tell its speed (EINVAL)
        return int(text) if re.fullmatch(r"-?\d+", text) else None

    speed = number("speed")
    flags = host.read(f"{path}/flags").strip()
    kind = _TYPES.get(host.read(f"{path}/type").strip(), "other")
    return NetworkInterface(
        name=path.rsplit("/", 1)[1],
        index=number("ifindex") or 0,
        up=bool(int(flags, 16) & 1),  # IFF_UP
        # Interfaces without hardware have no device behind them and link into devices/virtual.
        virtual="/devices/virtual/" in host.real_path(path),
        type=kind,
        mtu=number("mtu") or 0,
        speed_mbps=speed if speed is not None and speed > 0 else None,
        addresses=tuple(addresses),
    )


def _rdma_ports(host: Host) -> Iterator[RdmaPort]:
    for path in host.glob("/sys/class/infiniband/*/ports/*"):
        parts = path.split("/")

        def line(name: str, path: str = path) -> str:
            try:
                return host.read(f"{path}/{name}").strip()
            except OSError:
                return ""

        # "4: ACTIVE", "5: LinkUp", "100 Gb/sec (4X EDR)"
        rate = re.match(r"([\d.]+) Gb/sec", line("rate"))
        yield RdmaPort(
            device=parts[4],
            port=int(parts[6]),
            state=line("state").partition(": ")[2] or line("state"),
            physical_state=line("phys_state").partition(": ")[2] or line("phys_state"),
            rate_gbps=float(rate.group(1)) if rate else None,
            link_layer=line("link_layer"),
        )


PROBES = (Probe("network", NODE, 5.0, (NetworkInterface, RdmaPort, NetworkSurvey), network),)
