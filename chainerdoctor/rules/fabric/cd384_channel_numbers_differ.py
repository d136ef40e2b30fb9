"""CD384: channel numbers differ."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.nccl_logged import comm_name
from chainerdoctor.snapshot import Snapshot


@rule("CD384", Severity.WARNING, needs=(NcclLog,), since="0.1")
def channel_numbers_differ(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks of one communicator set up different numbers of channels.

    Why it hurts: settings differ between ranks (NCCL_MIN_NCHANNELS, NCCL_MAX_CTAS, NCCL_ALGO); NCCL expects
    them to be equal and can hang or go by the least.

    How to mend it: give all ranks the same environment (mpirun -x NCCL_…, srun --export=ALL) and the same
    /etc/nccl.conf.

    Source: NVIDIA/nccl src/init.cc
    """
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        most, least = communicator.channels.get("coll", 0), communicator.channels.get("least coll", 0)
        # Of communicators that cannot be told apart the numbers may well differ.
        if communicator.identified and most != least:
            yield Finding(
                comm_name(communicator),
                "ranks of one communicator have different numbers of channels",
                "Give all ranks the same NCCL_ settings: compare env | grep NCCL_ and /etc/nccl.conf on each.",
                (Evidence("collective channels", f"{least} to {most}", "one number on all ranks"),),
                Location(communicator.path, communicator.line),
            )
