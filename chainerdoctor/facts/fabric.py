"""Network interfaces and RDMA ports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class NetworkInterface(Fact):
    """``index`` is the kernel's; ``speed_mbps`` is ``None`` where the driver does not say.

    ``virtual`` is true for interfaces that no hardware is behind (bridges, veth pairs, tunnels, loopback);
    ``type`` is ``loopback``, ``ethernet``, ``infiniband`` or ``other``.
    """

    name: str
    index: int
    up: bool
    virtual: bool
    type: str
    mtu: int
    speed_mbps: Optional[int]
    addresses: Tuple[str, ...]


@dataclass(frozen=True)
class RdmaPort(Fact):
    """One port of an InfiniBand or RoCE adapter as sysfs shows it, such as ``mlx5_0`` port 1 ``ACTIVE``."""

    device: str
    port: int
    state: str
    physical_state: str
    rate_gbps: Optional[float]
    link_layer: str


@dataclass(frozen=True)
class NetworkSurvey(Fact):
    """How many interfaces and RDMA ports were listed: says that the list was complete, even when it is empty."""

    interfaces: int
    rdma_ports: int
