"""CD222: nvswitch not ready."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.fabric import NvSwitchFabric
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot

_STATES = {1: "not started", 2: "in progress", 3: "completed"}


def not_ready(fact: NvSwitchFabric) -> Optional[Tuple[str, str, str]]:
    """The state, or the error with which the registration was completed."""
    if fact.state != 3:
        return "registration", _STATES.get(fact.state, f"state {fact.state}"), "completed"
    return ("registration", f"ended with NVML code {fact.status}", "completed without error") if fact.status else None


@rule("CD222", Severity.ERROR, needs=(NvSwitchFabric,), since="0.1")
def nvswitch_not_ready(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU has not registered with the NVSwitch fabric.

    Why it hurts: CUDA does not start on such machines ("system not yet initialized", error 802), or NCCL cannot use NVLink.

    How to mend it: start nvidia-fabricmanager of exactly the driver's version, and read journalctl -u nvidia-fabricmanager.

    Source: NVML API reference, nvmlGpuFabricInfoV_t: 3 is completed, and the status counts only then.
    """
    yield from per_node(
        snapshot.all(NvSwitchFabric),
        not_ready,
        "the NVSwitch fabric is not ready",
        "Start nvidia-fabricmanager of the driver's version: systemctl restart nvidia-fabricmanager.",
    )
