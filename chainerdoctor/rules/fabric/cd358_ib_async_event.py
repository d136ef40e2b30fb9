"""CD358: ib async event."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD358", Severity.WARNING, needs=(NcclLog,), since="0.1")
def ib_async_event(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL was told of an asynchronous InfiniBand event, such as a port that went down.

    Why it hurts: transfers on that port fail or retry until it is up again; repeated events are a link that
    flaps.

    How to mend it: read dmesg and the port's counters on that host at that time; reseat or replace the cable if
    it repeats.

    Source: NVIDIA/nccl src/transport/net_ib (ncclIbAsyncThreadMain)
    """
    return told(
        snapshot,
        ("nccl.ib_async_event",),
        "an InfiniBand device reported an event",
        "Read dmesg at that time and ibstat on the host; replace the cable or transceiver if the event repeats.",
    )
