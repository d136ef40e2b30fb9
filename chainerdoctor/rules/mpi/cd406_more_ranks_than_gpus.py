"""CD406: more ranks than gpus."""

from __future__ import annotations

from typing import Dict, Iterator

from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD406", Severity.ERROR, needs=(LaunchedAs, GpuDriver), since="0.1")
def more_ranks_than_gpus(snapshot: Snapshot) -> Iterator[Finding]:
    """A node runs more ranks than it has GPUs.

    Why it hurts: ranks beyond the last GPU end with "invalid device ordinal", or share a GPU and halve its speed.

    How to mend it: start as many ranks per node as it has GPUs (mpiexec -ppn 4, srun --ntasks-per-node=4).

    Source: chainer issue 6073.
    """
    gpus = {seen.node: seen.fact.gpus for seen in snapshot.all(GpuDriver)}
    ranks: Dict[str, int] = {}
    for seen in snapshot.all(LaunchedAs):
        ranks[seen.node] = max(ranks.get(seen.node, 0), seen.fact.local_size or 1)
    for node, count in ranks.items():
        if node in gpus and 0 < gpus[node] < count:
            yield Finding(
                where=node,
                message=f"{count} ranks and {gpus[node]} GPUs",
                remedy=f"Start at most {gpus[node]} ranks on this node (host:{gpus[node]} in the hostfile).",
                evidence=(Evidence("ranks on the node", str(count), f"at most {gpus[node]}"),),
            )
