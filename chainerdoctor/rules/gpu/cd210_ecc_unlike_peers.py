"""CD210: ecc unlike peers."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.gpu import (
    Gpu,
    GpuErrors,
)
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list, unlike_peers
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD210",
    Severity.WARNING,
    needs=(
        GpuErrors,
        Gpu,
    ),
    since="0.1",
)
def ecc_unlike_peers(snapshot: Snapshot) -> Iterator[Finding]:
    """ECC is switched on or off unlike on most GPUs of the same model.

    Why it hurts: without ECC a flipped bit goes into the weights unseen; with it, cards with GDDR memory have less room and
    bandwidth, so the same batch does not fit everywhere or ranks differ in speed.

    How to mend it: set the same mode everywhere and restart: nvidia-smi -i N -e 1 (needs a reset of the GPU).
    """
    odd = unlike_peers(snapshot, snapshot.all(GpuErrors), lambda fact: None if fact.ecc is None else int(fact.ecc))
    by_node: Dict[str, List[int]] = {}
    for node, index in odd:
        by_node.setdefault(node, []).append(index)
    for node, indices in by_node.items():
        own, usual = odd[node, indices[0]]
        yield Finding(
            where=f"{node}/{device_list(indices)}",
            message=f"ECC is {'on' if own else 'off'}, and {'on' if usual else 'off'} on the other GPUs of this model",
            remedy=f"Run nvidia-smi -i {','.join(map(str, sorted(indices)))} -e {usual} and reset the GPU.",
            evidence=(Evidence("ECC", "on" if own else "off", "on" if usual else "off"),),
        )
