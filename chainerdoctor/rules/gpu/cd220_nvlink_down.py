"""CD220: nvlink down."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.fabric import NvLink
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import models
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD220",
    Severity.ERROR,
    needs=(
        NvLink,
        Gpu,
    ),
    since="0.1",
)
def nvlink_down(snapshot: Snapshot) -> Iterator[Finding]:
    """NVLinks of a GPU are down although it, or others of its model, have links that are up.

    Why it hurts: traffic takes fewer links or PCIe, and every ring through this GPU is as slow. NCCL before 2.12.7 could
    even corrupt results.

    How to mend it: restart nvidia-fabricmanager (machines with NVSwitch), reset the GPUs, look for Xid 74 in dmesg.
    """
    named = models(snapshot)
    wired = {named.get((seen.node, seen.fact.gpu)) for seen in snapshot.all(NvLink) if seen.fact.active}
    down: Dict[Tuple[str, int], List[int]] = {}
    total: Dict[Tuple[str, int], int] = {}
    for seen in snapshot.all(NvLink):
        place = (seen.node, seen.fact.gpu)
        total[place] = total.get(place, 0) + 1
        # A PCIe card without a bridge has only links that are down, and so have all of its model: nothing is wrong there.
        if not seen.fact.active and named.get(place) in wired:
            down.setdefault(place, []).append(seen.fact.link)
    for (node, gpu), links in down.items():
        numbers = ", ".join(map(str, links))
        yield Finding(
            where=f"{node}/GPU {gpu}",
            message=f"{len(links)} of {total[node, gpu]} NVLinks are down",
            remedy="Restart nvidia-fabricmanager (NVSwitch machines), reset the GPUs, and look for Xid 74 in dmesg.",
            evidence=(Evidence(f"link{'s' if len(links) > 1 else ''} {numbers}", "down", "up"),),
        )
