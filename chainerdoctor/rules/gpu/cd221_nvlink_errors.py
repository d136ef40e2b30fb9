"""CD221: nvlink errors."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.fabric import NvLink
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot


def troubled(fact: NvLink) -> Optional[Tuple[str, str, str]]:
    """Recoveries and replays. Single CRC errors are mended by the link itself and are no complaint."""
    if not fact.active or not (fact.recovery_errors or fact.replay_errors):
        return None
    return f"link {fact.link}", f"{fact.recovery_errors or 0} recoveries, {fact.replay_errors or 0} replays", "none"


@rule("CD221", Severity.WARNING, needs=(NvLink,), since="0.1")
def nvlink_errors(snapshot: Snapshot) -> Iterator[Finding]:
    """An NVLink had to recover or to send packets again.

    Why it hurts: each recovery stops the link for a moment, and links that recover often end in Xid 74 and a dead job.

    How to mend it: watch nvidia-smi nvlink -e while a job runs; if the counters grow, reseat the bridge or have the board
    exchanged.
    """
    yield from per_node(
        snapshot.all(NvLink),
        troubled,
        "an NVLink has counted errors",
        "Watch nvidia-smi nvlink -e -i {gpus} under load; if it grows reseat the bridge or exchange the board.",
    )
