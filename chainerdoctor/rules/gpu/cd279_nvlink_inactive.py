"""CD279: nvlink inactive."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LoggedGpu
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place
from chainerdoctor.snapshot import Snapshot


@rule("CD279", Severity.ERROR, needs=(LoggedGpu,), since="0.1")
def nvlink_inactive(snapshot: Snapshot) -> Iterator[Finding]:
    """NVLinks of a GPU are inactive although it has them.

    Why it hurts: traffic to this GPU takes PCIe or fewer links, and every ring through it is as slow.

    How to mend it: restart nvidia-fabricmanager (same version as the driver) on NVSwitch machines; reset the
    GPUs; otherwise reseat or replace.
    """
    everyone = [s.fact for s in snapshot.all(LoggedGpu) if s.fact.form == "nvlink"]
    for gpu in everyone:
        off = [number for number, speed in gpu.links if "inactive" in speed.lower()]
        none_at_all = "all links are inactive" in gpu.values.get("nvlink", "") or (
            bool(off) and len(off) == len(gpu.links)
        )
        others = any(g.links and any("GB/s" in s for _, s in g.links) for g in everyone if g.name == gpu.name)
        # A PCIe card without a bridge has no active link and nothing is wrong with it; SXM boards are wired.
        if none_at_all and not ("SXM" in gpu.name or others):
            continue
        if none_at_all or off and len(off) < len(gpu.links) and "SXM" in gpu.name:
            line = gpu.lines.get("nvlink") or (gpu.lines.get(f"link {off[0]}") if off else None) or gpu.line
            seen = "all inactive" if none_at_all else f"{len(off)} of {len(gpu.links)} inactive"
            yield Finding(
                f"{gpu.gpu} ({gpu.name})",
                "NVLinks are inactive",
                "Restart nvidia-fabricmanager (NVSwitch machines), reset the GPUs, then look at dmesg for Xid 74.",
                (Evidence(place(gpu.path, line), seen, "every link with its speed"),),
                Location(gpu.path, line),
            )
