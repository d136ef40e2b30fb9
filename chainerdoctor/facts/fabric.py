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


@dataclass(frozen=True)
class NvLink(Fact):
    """One NVLink of a device. ``remote_bus_id`` is what it leads to, a GPU or an NVSwitch; ``None`` while it is down.

    Errors count since the driver was loaded and are ``None`` where the card does not count them.
    """

    gpu: int
    link: int
    active: bool
    remote_bus_id: Optional[str]
    replay_errors: Optional[int]
    recovery_errors: Optional[int]
    crc_errors: Optional[int]


@dataclass(frozen=True)
class NvSwitchFabric(Fact):
    """Registration of a device with the NVSwitch fabric: NVML's state (1 not started, 2 in progress, 3 completed) and
    the NVML code with which it ended (0 is success)."""

    gpu: int
    state: int
    status: int


@dataclass(frozen=True)
class GpuPair(Fact):
    """Two devices of a node. ``path`` is the nearest thing that they share (PIX PXB PHB NODE SYS, as nvidia-smi names
    them), ``read`` and ``write`` are ``ok`` or NVML's reason why ``gpu`` cannot reach ``peer`` directly."""

    gpu: int
    peer: int
    path: Optional[str]
    read: Optional[str]
    write: Optional[str]


@dataclass(frozen=True)
class NicPath(Fact):
    """The way between a GPU and a network or RDMA device, by nvidia-smi's names (PIX PXB PHB NODE SYS)."""

    gpu_bus_id: str
    device: str
    rdma: bool
    path: str


@dataclass(frozen=True)
class PeerMemory(Fact):
    """What GPUDirect RDMA needs: the nvidia_peermem module, or DMA-BUF, which the open kernel modules have."""

    peermem: bool
    open_modules: bool
