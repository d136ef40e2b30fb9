"""CD303: ib hca matches more."""

from __future__ import annotations

from typing import Dict, Iterator, Set

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.fabric import NetworkSurvey, RdmaPort
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.interface_choice import exact_names
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
    present: Dict[str, Set[str]] = {}
    for seen in snapshot.all(RdmaPort):
        present.setdefault(seen.node, set()).add(seen.fact.device)
    settings = [seen for seen in snapshot.all(EnvironmentVariable) if seen.fact.name == "NCCL_IB_HCA"]
    for value, sightings in groups(settings, lambda fact: fact.value).items():
        for name in exact_names(value):
            node = next((s.node for s in sightings if name in present.get(s.node, set())), None)
            also = sorted(n for n in present.get(node or "", ()) if n.startswith(name) and n != name)
            if node is not None and also:
                yield Finding(
                    where=places([s for s in sightings if s.node == node]),
                    message=f"NCCL_IB_HCA={value} also matches {', '.join(also)}",
                    remedy=f'Write NCCL_IB_HCA=={name} (the value ="={name}") to match exactly, or exclude with ^.',
                    evidence=(Evidence("NCCL_IB_HCA", value, f"={name}"), Evidence("also matched", ", ".join(also))),
                )
