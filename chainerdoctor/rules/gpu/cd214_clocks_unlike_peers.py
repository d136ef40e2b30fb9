"""CD214: clocks unlike peers."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.gpu import (
    Gpu,
    GpuClocks,
)
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list, unlike_peers
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD214",
    Severity.WARNING,
    needs=(
        GpuClocks,
        Gpu,
    ),
    since="0.1",
)
def clocks_unlike_peers(snapshot: Snapshot) -> Iterator[Finding]:
    """The clock limits of a GPU differ from those of most GPUs of the same model.

    Why it hurts: application clocks or limits that were once set with nvidia-smi stay until they are reset. The card with
    the lower limit sets the pace of every all-reduce.

    How to mend it: reset them as root: nvidia-smi -i N -rac (application clocks) and -rgc (locked clocks).
    """
    subjects = (
        ("application clock", lambda fact: fact.sm_application_mhz),
        ("highest clock", lambda fact: fact.sm_max_mhz),
    )
    for what, value in subjects:
        odd = unlike_peers(snapshot, snapshot.all(GpuClocks), value)
        by_node: Dict[str, List[int]] = {}
        for node, index in odd:
            by_node.setdefault(node, []).append(index)
        for node, indices in by_node.items():
            numbers = ",".join(map(str, sorted(indices)))
            yield Finding(
                where=f"{node}/{device_list(indices)}",
                message=f"the {what} differs from that of the other GPUs of this model",
                remedy=f"Run nvidia-smi -i {numbers} -rac and nvidia-smi -i {numbers} -rgc as root.",
                evidence=tuple(
                    Evidence(f"GPU {index}: {what}", f"{odd[node, index][0]} MHz", f"{odd[node, index][1]} MHz")
                    for index in sorted(indices)[:8]
                ),
            )
