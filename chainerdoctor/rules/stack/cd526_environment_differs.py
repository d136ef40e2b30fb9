"""CD526: environment differs."""

from __future__ import annotations

import re
from typing import Dict, Iterator, Optional, Tuple

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot

Place = Tuple[str, Optional[int]]

#: These name a device or the node itself, and have to differ between ranks or nodes.
_DIFFERS_BY_DESIGN = re.compile(
    r"CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|I_MPI_(PIN|INFO)|OMP_PLACES|UCX_NET_DEVICES$|NCCL_IB_HCA$"
)


@rule("CD526", Severity.WARNING, needs=(EnvironmentSurvey,), since="0.1")
def environment_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A variable that changes how NCCL, MPI, CUDA or Chainer behaves is not the same on every node.

    Why it hurts: NCCL settings that differ between ranks (another interface, another protocol) end in a hang at
    start-up or in a slow ring, and a variable set in one node's shell profile is easily overlooked.

    How to mend it: pass variables through the launcher (mpiexec -x NAME or -genv NAME VALUE, srun --export) instead
    of shell profiles.
    """
    ranks_by_place = {(seen.node, seen.rank) for seen in snapshot.all(EnvironmentSurvey)}
    by_name: Dict[str, Dict[Place, Sighting[EnvironmentVariable]]] = {}
    for seen in snapshot.all(EnvironmentVariable):
        if not _DIFFERS_BY_DESIGN.match(seen.fact.name):
            by_name.setdefault(seen.fact.name, {})[(seen.node, seen.rank)] = seen
    for name, holders in sorted(by_name.items()):
        # A rank that lacks the variable takes part in the comparison with the value "not set".
        absent = [
            Sighting(node, rank, "environment", 0.0, 0.0, EnvironmentVariable(name, "(not set)"))
            for node, rank in sorted(ranks_by_place - set(holders), key=str)
        ]
        yield from differences(
            [*holders.values(), *absent],
            lambda fact: fact.value,
            name,
            f"Set {name} to one value on all ranks, through the launcher.",
        )
