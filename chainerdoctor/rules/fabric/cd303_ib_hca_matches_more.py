"""CD303: ib hca matches more."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.fabric import NetworkSurvey, RdmaPort
from chainerdoctor.facts.stack import EnvironmentSurvey
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.interface_choice import names_more
from chainerdoctor.snapshot import Snapshot


@rule("CD303", Severity.WARNING, needs=(EnvironmentSurvey, NetworkSurvey), since="0.1")
def ib_hca_matches_more(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL_IB_HCA names more adapters than were meant, because it matches by prefix.

    Why it hurts: mlx5_1 also takes mlx5_10 to mlx5_19; a storage or management adapter joins the ring and slows or
    breaks it.

    How to mend it: write = before the name to match it exactly: NCCL_IB_HCA==NAME in the shell means the value
    =NAME.

    Source: NCCL user guide, NCCL_IB_HCA.
    """
    return names_more(snapshot, "NCCL_IB_HCA", ((seen.node, seen.fact.device) for seen in snapshot.all(RdmaPort)))
