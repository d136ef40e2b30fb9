"""CD383: nvls unused."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog, NcclProcess
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.nccl_logged import comm_name, rank_hosts
from chainerdoctor.snapshot import Snapshot


@rule("CD383", Severity.INFO, needs=(NcclLog,), since="0.1")
def nvls_unused(snapshot: Snapshot) -> Iterator[Finding]:
    """NVLink SHARP (NVLS) is available but a communicator within one host has no NVLS channel.

    Why it hurts: all-reduce inside the host does without the switch's own adding-up, which is worth about a
    fifth of the bandwidth.

    How to mend it: see whether NCCL_NVLS_ENABLE=0, NCCL_ALGO or NCCL_MAX_CTAS is set; NCCL also leaves it out
    for few ranks and when memory for it is short.

    Source: NVIDIA/nccl src/transport/nvls.cc
    """
    available = {s.fact.host for s in snapshot.all(NcclProcess) if s.fact.nvls}
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        hosts = set(rank_hosts(communicator).values())
        if (
            communicator.channels.get("nvls") == 0
            and communicator.nranks > 2
            and len(hosts) == 1
            and hosts <= available
        ):
            yield Finding(
                comm_name(communicator),
                "NVLS is available but not used",
                "Look whether NCCL_NVLS_ENABLE, NCCL_ALGO or NCCL_MAX_CTAS is set.",
                (Evidence("NVLS channels", "0", "some, as multicast is available"),),
                Location(communicator.path, communicator.line),
            )
