"""CD325: NCCL sum wrong."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.workload import NcclAllreduce
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD325", Severity.ERROR, needs=(NcclAllreduce,), since="0.1")
def nccl_sum_wrong(snapshot: Snapshot) -> Iterator[Finding]:
    """An all-reduce of small integers through NCCL gives a wrong sum.

    Why it hurts: gradients are corrupted on every step without an error.

    How to mend it: remove NCCL_PROTO and NCCL_ALGO from the environment, update NCCL, and try NCCL_P2P_DISABLE=1 and
    NCCL_NET_GDR_LEVEL=LOC one after the other to find the path that corrupts.
    """
    wrong = [seen for seen in snapshot.all(NcclAllreduce) if seen.fact.wrong]
    if wrong:
        nodes = dict.fromkeys(seen.node for seen in wrong)
        yield Finding(
            where=", ".join(list(nodes)[:3]) + (f" and {len(nodes) - 3} more nodes" if len(nodes) > 3 else ""),
            message="NCCL's all-reduce gives wrong sums",
            remedy="Unset NCCL_PROTO and NCCL_ALGO, update NCCL, and try NCCL_P2P_DISABLE=1 to find the bad path.",
            evidence=tuple(
                Evidence(f"rank {seen.rank} on {seen.node}", f"{seen.fact.wrong:,} wrong elements", "0")
                for seen in wrong[:8]
            ),
        )
