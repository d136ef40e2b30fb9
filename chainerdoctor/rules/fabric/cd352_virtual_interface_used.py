"""CD352: virtual interface chosen."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.log import NcclLog, NcclProcess
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import shortened
from chainerdoctor.rules.nccl_logged import process_findings
from chainerdoctor.snapshot import Snapshot

#: Beginnings of names that container engines, hypervisors and tunnels give to interfaces. (Inside a pod eth0 is the
#: pod's own end of such a pair and is right.)
VIRTUAL = (
    "veth",
    "docker",
    "br-",
    "virbr",
    "cni",
    "flannel",
    "cali",
    "lxc",
    "tun",
    "tap",
    "ip6tnl",
    "sit",
    "dummy",
    "podman",
    "weave",
)


@rule("CD352", Severity.WARNING, needs=(NcclLog,), since="0.1")
def virtual_interface_used(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL uses a virtual interface (a container bridge, a veth pair, a tunnel) to reach other ranks.

    Why it hurts: such addresses exist on every host or on none but this: connections are refused, time out, or
    reach the wrong host.

    How to mend it: name the real interface: NCCL_SOCKET_IFNAME=eth0 (prefix; =eth0 exact; ^docker,veth
    excludes).

    Source: pytorch/pytorch#68893, NVIDIA/nccl#529
    """

    def chosen(process: NcclProcess) -> Optional[Tuple[str, str, str]]:
        for field, pairs in (("bootstrap", process.bootstrap), ("interfaces", process.interfaces)):
            bad = [f"{name}:{address}" for name, address in pairs if name.startswith(VIRTUAL)]
            if bad:
                return field, shortened(bad), field
        return None

    yield from process_findings(
        snapshot,
        chosen,
        "NCCL uses a virtual interface",
        "Set NCCL_SOCKET_IFNAME to the interface that all hosts share, or to ^docker,veth,br-,virbr,lo.",
        "an interface that all hosts share",
    )
