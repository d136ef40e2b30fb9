"""CD356: connect failed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD356", Severity.ERROR, needs=(NcclLog,), since="0.1")
def connect_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank could not connect to another one.

    Why it hurts: the run stops, or hangs until its time is over. NCCL has usually chosen an interface that the
    other host cannot reach (a container's bridge, a virtual pair, a link-local address), or a firewall is in
    the way.

    How to mend it: name the interface that all hosts share: NCCL_SOCKET_IFNAME=eth0 (prefixes; ^docker,lo
    excludes), and open all ports between the nodes.

    Source: pytorch/pytorch#68893, NVIDIA/nccl#529, #975
    """
    return told(
        snapshot,
        ("nccl.connect_failed",),
        "a rank could not connect to another",
        "Set NCCL_SOCKET_IFNAME to the interface that all nodes share (for example ^docker,lo,veth) and open the "
        "ports between them.",
    )
