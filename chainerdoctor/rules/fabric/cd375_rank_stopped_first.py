"""CD375: rank stopped first."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place
from chainerdoctor.rules.nccl_logged import listed_ranks
from chainerdoctor.snapshot import Snapshot


@rule("CD375", Severity.ERROR, needs=(NcclLog,), since="0.1")
def rank_stopped_first(snapshot: Snapshot) -> Iterator[Finding]:
    """One rank stopped calling collectives before all others.

    Why it hurts: the others wait for it in the next one; what it did then is the cause of the hang.

    How to mend it: look at what that rank printed last and what it does (py-spy dump --pid): a longer
    evaluation, an exception, a branch on the rank, a slow disk.

    Source: NCCL_DEBUG_SUBSYS=COLL; NVIDIA/nccl src/enqueue.cc
    """
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        ops = {int(rank): count for rank, count in communicator.last_ops.items()}
        if len(ops) < 2:
            continue
        least = min(ops.values())
        behind = [rank for rank, count in ops.items() if count == least]
        ahead = [rank for rank, count in ops.items() if count > least]
        # A log cut in full flow shows some ranks one call ahead of others; a stuck one shows all but the culprit ahead.
        if not ahead or len(behind) > max(1, len(ops) // 4):
            continue
        spread = max(ops.values()) - least
        last_line = max(communicator.last_lines[str(r)] for r in behind)
        if spread < 2 and (len(ops) < 3 or any(communicator.last_lines[str(r)] < last_line for r in ahead)):
            continue
        rank = behind[0]
        others = max(ops.values())
        yield Finding(
            listed_ranks(behind, communicator),
            f"rank {rank} stopped after collective number {least}; others went on to {others}",
            f"Look at what rank {rank} printed after that line, and at its stack with py-spy dump.",
            (
                Evidence(
                    f"last call of rank {rank}, {place(communicator.path, communicator.last_lines[str(rank)])}",
                    communicator.last_texts[str(rank)] or "a group of calls",
                    f"number {others}, as rank {max(ops, key=lambda r: ops[r])}",
                ),
            ),
            Location(communicator.path, communicator.last_lines[str(rank)]),
        )
