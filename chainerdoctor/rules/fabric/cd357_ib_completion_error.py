"""CD357: ib completion error."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD357", Severity.ERROR, needs=(NcclLog,), since="0.1")
def ib_completion_error(snapshot: Snapshot) -> Iterator[Finding]:
    """An InfiniBand transfer failed: NCCL got a completion with an error status.

    Why it hurts: the transfer is lost, the rank that saw it stops, and all others wait for it for ever. Status
    12 (retries exceeded) means that the peer did not answer: a cable, a switch port, a wrong GID index on RoCE,
    or a peer that died before.

    How to mend it: look at the ports of both ends (ibstat, and the error counters with perfquery -x); on RoCE
    check NCCL_IB_GID_INDEX, the MTU and priority flow control; if the peer's log ends earlier, begin with the
    peer. Status 5 is a flush after another error, status 10 remote access, status 4 local protection (often
    memory registration).

    Source: NVIDIA/nccl src/transport/net_ib; enum ibv_wc_status in rdma-core
    """
    return told(
        snapshot,
        ("nccl.ib_completion",),
        "InfiniBand transfer failed",
        "Check both ports with ibstat and perfquery -x; on RoCE check NCCL_IB_GID_INDEX and flow control; if the "
        "peer died first, begin there.",
    )
