"""CD322: access control redirects."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.fabric import GpuPair, NvLink
from chainerdoctor.facts.host import AccessControl
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD322",
    Severity.WARNING,
    needs=(
        AccessControl,
        GpuPair,
    ),
    since="0.1",
)
def access_control_redirects(snapshot: Snapshot) -> Iterator[Finding]:
    """Access control (ACS) of PCI bridges is on, and GPUs of the node exchange data over PCI Express.

    Why it hurts: traffic between two GPUs, or a GPU and a network card, behind one switch is sent up to the processor and
    back: a fraction of the bandwidth, and hangs are known.

    How to mend it: on bare metal switch ACS off in the BIOS, or with setpci on each bridge at boot. In virtual machines it
    has to stay on.

    Source: NCCL user guide, "PCI Access Control Services (ACS)".
    """
    joined = {seen.node for seen in snapshot.all(NvLink) if seen.fact.active}
    switched = {seen.node for seen in snapshot.all(GpuPair) if seen.fact.path in ("PIX", "PXB")}
    on: Dict[str, List[str]] = {}
    for seen in snapshot.all(AccessControl):
        if seen.fact.source_validation and seen.node in switched - joined:
            on.setdefault(seen.node, []).append(seen.fact.bridge)
    for node, bridges in on.items():
        yield Finding(
            where=node,
            message="PCI access control sends the GPUs' traffic through the processor",
            remedy="Switch ACS off in the BIOS, or with setpci -s BRIDGE ECAP_ACS+6.w=0000 at boot (bare metal only).",
            evidence=(Evidence("source validation", f"on at {', '.join(bridges[:4])}", "off"),),
        )
