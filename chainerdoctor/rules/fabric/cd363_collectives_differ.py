"""CD363: collectives differ."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place, told
from chainerdoctor.rules.nccl_logged import comm_name, listed_ranks
from chainerdoctor.snapshot import Snapshot


@rule("CD363", Severity.ERROR, needs=(NcclLog,), since="0.1")
def collectives_differ(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks called different collectives, or the same with different sizes.

    Why it hurts: NCCL mixes up the data or hangs.

    How to mend it: all ranks have to make the same calls in the same order with the same sizes: look for
    branches on the rank, parameters that exist on some ranks only, and batches of unequal shape.

    Source: NVIDIA/nccl#296
    """
    yield from told(
        snapshot,
        ("nccl.mismatched_collective",),
        "ranks called different collectives",
        "Make all ranks call the same collectives in the same order; NCCL_DEBUG_SUBSYS=COLL shows each call.",
    )
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        if communicator.mismatch:
            rank, text, line, other, other_text, other_line, count = communicator.mismatch
            yield Finding(
                listed_ranks([int(rank), int(other)], communicator),
                f"ranks disagree on collective number {int(count)} of {comm_name(communicator)}",
                "Make all ranks call the same collectives in the same order with the same sizes.",
                (
                    Evidence(f"rank {rank}, {place(communicator.path, int(line))}", text),
                    Evidence(f"rank {other}, {place(communicator.path, int(other_line))}", other_text, text),
                ),
                Location(communicator.path, int(other_line)),
            )
