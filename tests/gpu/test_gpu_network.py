"""GPUs and network cards on PCI Express: a taped node whose paths were drawn by hand, by the legend of nvidia-smi topo.

GPU 07 is behind one switch with mlx5_0, 0b behind a second switch below it, 47 under another root complex of the same
NUMA node, and 87 on the other processor; eth0 is at another port of the first root complex.
"""

from pathlib import Path

import pytest

from chainerdoctor.facts.fabric import NicPath, PeerMemory
from chainerdoctor.host import Host, TapedHost
from chainerdoctor.probes import Unseen, all_probes

HOSTS = Path(__file__).resolve().parents[2] / "fixtures" / "hosts"
SEE = next(probe for probe in all_probes() if probe.name == "gpu_network").see


class Changed(TapedHost):
    """A taped host with other files on it."""

    def __init__(self, name: str, **files: str) -> None:
        super().__init__(HOSTS / name)
        self._tape["files"].update(files)


def test_paths_by_the_legend_of_nvidia_smi() -> None:
    paths = {(f.gpu_bus_id[5:7], f.device): f.path for f in SEE(TapedHost(HOSTS / "gpu-pci")) if type(f) is NicPath}
    assert paths == {
        ("07", "mlx5_0"): "PIX", ("07", "ib0"): "PIX", ("07", "eth0"): "PHB",
        ("0B", "mlx5_0"): "PXB", ("0B", "ib0"): "PXB", ("0B", "eth0"): "PHB",
        ("47", "mlx5_0"): "NODE", ("47", "ib0"): "NODE", ("47", "eth0"): "NODE",
        ("87", "mlx5_0"): "SYS", ("87", "ib0"): "SYS", ("87", "eth0"): "SYS",
    }  # fmt: skip


def test_only_the_rdma_device_is_called_one() -> None:
    told = {(f.device, f.rdma) for f in SEE(TapedHost(HOSTS / "gpu-pci")) if type(f) is NicPath}
    assert told == {("mlx5_0", True), ("ib0", False), ("eth0", False)}


def test_peer_memory() -> None:
    assert next(f for f in SEE(TapedHost(HOSTS / "gpu-pci")) if type(f) is PeerMemory) == PeerMemory(True, False)
    version = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n"
    host: Host = Changed("gpu-pci", **{"/proc/driver/nvidia/version": version})
    assert next(f for f in SEE(host) if type(f) is PeerMemory) == PeerMemory(True, True)


@pytest.mark.parametrize("numa", ["-1", ""])
def test_a_machine_that_tells_no_numa_nodes_has_no_far_side(numa: str) -> None:
    place = "/sys/devices/pci0000:80/0000:80:01.0/0000:87:00.0/numa_node"
    paths = {f.path for f in SEE(Changed("gpu-pci", **{place: numa})) if type(f) is NicPath and "87" in f.gpu_bus_id}
    assert paths == {"NODE"}


def test_without_a_gpu_the_reason_is_absence() -> None:
    with pytest.raises(Unseen) as told:
        list(SEE(TapedHost(HOSTS / "laptop-container")))
    assert told.value.reason == "absent"
