"""Probes on taped machines: what each file says is written down here by hand, from the kernel's documentation."""

import hashlib
import struct
from pathlib import Path

import pytest

from chainerdoctor.facts import Missing
from chainerdoctor.facts.fabric import NetworkInterface, NetworkSurvey, RdmaPort
from chainerdoctor.facts.host import (
    Boot,
    HostMemory,
    HugePages,
    Iommu,
    OperatingSystem,
    Processors,
    ResourceLimit,
    SharedMemory,
)
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable, SettingsFile, TrainingScript
from chainerdoctor.host import TapedHost
from chainerdoctor.probes import Unseen, all_probes
from chainerdoctor.probes.machine import _acs_control

HOSTS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "hosts"
PROBES = {probe.name: probe for probe in all_probes()}


def see(host: str, probe: str) -> list:
    return list(PROBES[probe].see(TapedHost(HOSTS / host)))


def test_gpu_node_machine() -> None:
    assert see("gpu-node", "operating_system") == [
        OperatingSystem("gpu07", "5.15.0-91-generic", "Ubuntu 22.04.4 LTS", "x86_64", None),
        Boot("3f1c2d4e-0000-4000-8000-000000000007"),
    ]
    assert see("gpu-node", "processors") == [Processors("AMD EPYC 7763 64-Core Processor", 2, 4, 4, 2)]
    assert see("gpu-node", "memory") == [HostMemory(1056478212 * 1024, 990000000 * 1024, 512 * 2**30)]
    assert see("gpu-node", "shared_memory") == [SharedMemory("/dev/shm", 540916719616, 540000000000)]
    assert see("gpu-node", "huge_pages") == [HugePages("madvise")]
    assert see("gpu-node", "pci_isolation") == [Iommu(2, True)]
    assert see("gpu-node", "limits") == [
        ResourceLimit("memlock", None, None),
        ResourceLimit("nofile", 1048576, 1048576),
        ResourceLimit("stack", 8388608, None),
    ]


def test_gpu_node_network_in_the_kernels_order() -> None:
    assert see("gpu-node", "network") == [
        NetworkInterface("lo", 1, True, True, "loopback", 65536, None, ("127.0.0.1", "::1")),
        NetworkInterface("eth0", 2, True, False, "ethernet", 9000, 100000, ("192.0.2.7",)),
        NetworkInterface("docker0", 3, True, True, "ethernet", 1500, None, ("172.17.0.1",)),
        NetworkInterface("ib0", 4, False, False, "infiniband", 2044, None, ("198.51.100.7",)),
        RdmaPort("mlx5_0", 1, "ACTIVE", "LinkUp", 200.0, "InfiniBand"),
        RdmaPort("mlx5_1", 1, "DOWN", "Disabled", 10.0, "InfiniBand"),
        NetworkSurvey(4, 2),
    ]


def test_environment_is_taken_by_allow_list_and_no_secret_with_it() -> None:
    assert see("gpu-node", "environment") == [
        EnvironmentVariable("LD_LIBRARY_PATH", "/opt/cuda/lib64"),
        EnvironmentVariable("NCCL_IB_HCA", "mlx5_0"),
        EnvironmentSurvey(2),
    ]
    assert "do-not-take" not in repr([see("gpu-node", name) for name in ("environment", "nccl_settings")])


def test_nccl_conf_and_script() -> None:
    assert see("gpu-node", "nccl_settings") == [
        SettingsFile("/etc/nccl.conf", (("NCCL_DEBUG", "WARN"), ("NCCL_SOCKET_IFNAME", "ib0")))
    ]
    content = b"print('hello')\n"
    assert see("gpu-node", "training_script") == [
        TrainingScript("/train/train.py", hashlib.sha256(content).hexdigest(), len(content))
    ]


def test_launched_as() -> None:
    assert see("gpu-node", "launched_as") == [LaunchedAs("Open MPI", 5, 8, 1, 4)]


def test_container_on_arm() -> None:
    assert see("laptop-container", "operating_system")[0] == OperatingSystem(
        "3f2a1b", "6.6.0", "unknown", "aarch64", "docker"
    )
    assert see("laptop-container", "processors") == [Processors("ARM part 0xd40", 1, 1, 1, 1)]
    # cgroup v1's "no limit", and a kernel without MemAvailable.
    assert see("laptop-container", "memory") == [HostMemory(8000000 * 1024, 4000000 * 1024, None)]


@pytest.mark.parametrize(
    ("probe", "words"),
    [
        ("shared_memory", "no /dev/shm"),
        ("huge_pages", "no transparent huge pages"),
        ("nccl_settings", "no nccl.conf"),
        ("training_script", "no script"),
        ("launched_as", "not started by a launcher"),
        ("mpi_world", "without MPI"),
    ],
)
def test_absence_has_a_reason(probe: str, words: str) -> None:
    with pytest.raises(Unseen, match=words) as caught:
        see("laptop-container", probe)
    assert caught.value.reason == "absent"


def test_acs_control_register() -> None:
    config = bytearray(4096)
    struct.pack_into("<I", config, 0x100, 0x0001 | 1 << 16 | 0x148 << 20)  # AER, next at 0x148
    struct.pack_into("<I", config, 0x148, 0x000D | 1 << 16)  # ACS, last
    struct.pack_into("<H", config, 0x148 + 6, 0b11101)
    assert _acs_control(bytes(config)) == 0b11101
    assert _acs_control(bytes(64)) is None
    struct.pack_into("<I", config, 0x148, 0x0001 | 0x100 << 20)  # a loop in the chain
    assert _acs_control(bytes(config)) is None


def test_probes_are_well_declared() -> None:
    assert len({probe.name for probe in all_probes()}) == len(all_probes())
    for probe in all_probes():
        assert probe.scope in ("node", "rank")
        assert 0 < probe.deadline_s <= 60
        assert probe.yields
        assert Missing not in probe.yields
