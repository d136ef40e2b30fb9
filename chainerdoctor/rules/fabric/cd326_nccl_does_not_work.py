"""CD326: NCCL does not work."""

from __future__ import annotations

from typing import Iterator, List

from chainerdoctor.facts.workload import NcclAllreduce
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD326", Severity.ERROR, needs=(NcclAllreduce,), since="0.1")
def nccl_does_not_work(snapshot: Snapshot) -> Iterator[Finding]:
    """A communicator of all ranks cannot be made by NCCL, or its first all-reduce does not end.

    Why it hurts: ChainerMN's pure_nccl communicator does the same at the start of training and hangs or fails there.

    How to mend it: run the job's command with NCCL_DEBUG=INFO and give the output to chainerdoctor check-log. Ranks
    that report an error are the culprits, and those without an answer wait for them.
    """
    failed = [seen for seen in snapshot.all(NcclAllreduce) if seen.fact.state != "complete"]
    raised = [seen for seen in failed if not seen.fact.hung]
    culprits = raised or failed
    if culprits:
        yield Finding(
            where=", ".join(dict.fromkeys(f"{seen.node}/rank {seen.rank}" for seen in culprits[:4]))
            + (f" and {len(culprits) - 4} more ranks" if len(culprits) > 4 else ""),
            message="NCCL fails on these ranks" if raised else "NCCL does not answer on any of these ranks",
            remedy="Run with NCCL_DEBUG=INFO and give the output to chainerdoctor check-log.",
            evidence=(*_told(culprits), *_waiting(failed, raised)),
        )


def _told(sightings: List[Sighting[NcclAllreduce]]) -> List[Evidence]:
    return [Evidence(f"rank {seen.rank}", seen.fact.state, "complete") for seen in sightings[:6]]


def _waiting(failed: List[Sighting[NcclAllreduce]], raised: List[Sighting[NcclAllreduce]]) -> List[Evidence]:
    waiting = len(failed) - len(raised)
    return [Evidence("ranks that wait for them", str(waiting), "0")] if raised and waiting else []
