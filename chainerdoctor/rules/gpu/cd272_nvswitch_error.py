"""CD272: nvswitch error."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import events, quotes, shortened, speakers
from chainerdoctor.snapshot import Snapshot


@rule("CD272", Severity.WARNING, needs=(KernelLog,), since="0.1")
def nvswitch_error(snapshot: Snapshot) -> Iterator[Finding]:
    """An NVSwitch or the fabric manager reported an error that is not fatal.

    Why it hurts: single transfers were repeated; many of them slow the links down and often come before a fatal
    error.

    How to mend it: watch whether the number grows (nvidia-smi nvlink -e); have a link that repeats looked at.

    Source: NVIDIA Fabric Manager user guide
    """
    found = [
        e
        for e in events(snapshot, "kernel.sxid", "kernel.fabric_manager")
        if e.detail.get("severity", "").lower() != "fatal"
    ]
    if found:
        numbers = shortened(dict.fromkeys(e.detail["sxid"] for e in found if "sxid" in e.detail))
        yield Finding(
            speakers(found),
            "an NVSwitch or the fabric manager reported errors" + (f" (SXid {numbers})" if numbers else ""),
            "Watch nvidia-smi nvlink -e; have the link looked at if its counters grow.",
            quotes(found, snapshot),
            Location(found[0].path, found[0].line),
        )
