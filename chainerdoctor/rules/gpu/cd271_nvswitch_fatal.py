"""CD271: nvswitch fatal."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import events, quotes, shortened, speakers
from chainerdoctor.snapshot import Snapshot


@rule("CD271", Severity.ERROR, needs=(KernelLog,), since="0.1")
def nvswitch_fatal(snapshot: Snapshot) -> Iterator[Finding]:
    """An NVSwitch reported a fatal error (SXid).

    Why it hurts: all GPUs of the machine lose their fast path; running jobs stop.

    How to mend it: restart nvidia-fabricmanager and reset all GPUs, or restart the machine; a second time on
    the same link is hardware.

    Source: NVIDIA Fabric Manager user guide, "SXid errors"
    """
    found = [
        e
        for e in events(snapshot, "kernel.sxid", "kernel.fabric_manager")
        if e.detail.get("severity", "").lower() == "fatal"
    ]
    if found:
        numbers = shortened(dict.fromkeys(e.detail.get("sxid", "?") for e in found))
        yield Finding(
            speakers(found),
            f"an NVSwitch reported a fatal error (SXid {numbers})",
            "Restart nvidia-fabricmanager and reset all GPUs, or restart the machine; call support if the same "
            "link fails again.",
            quotes(found, snapshot),
            Location(found[0].path, found[0].line),
        )
