"""CD231: too few visible gpus."""

from __future__ import annotations

from typing import Dict, Iterator, List, Set, Tuple

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.visible import local_ranks, resolve, visible_to
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD231",
    Severity.ERROR,
    needs=(
        LaunchedAs,
        Gpu,
    ),
    since="0.1",
)
def too_few_visible_gpus(snapshot: Snapshot) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES shows a rank several GPUs, but fewer than the node has ranks.

    Why it hurts: the usual comm.intra_rank of the last ranks is beyond the list: "invalid device ordinal".

    How to mend it: list as many GPUs as the node has ranks, or start fewer ranks.

    Source: chainer issue 6073.
    """
    ranks_on = local_ranks(snapshot)
    short: Dict[Tuple[str, str], List[int]] = {}
    for node, rank, variable in visible_to(snapshot):
        if 1 < len(resolve(snapshot, node, variable)) < ranks_on.get(node, 0):
            short.setdefault((node, variable), []).append(rank)
    lists: Dict[str, Set[str]] = {}
    for node, _, variable in visible_to(snapshot):
        lists.setdefault(node, set()).add(variable)
    for (node, variable), ranks in short.items():
        # Ranks that have different lists share the node's GPUs among them by design.
        if len(lists[node]) == 1:
            yield Finding(
                where=f"{node}/{rank_list(sorted(ranks))}",
                message=f"{ranks_on[node]} ranks on the node, and {len(resolve(snapshot, node, variable))} GPUs are visible",
                remedy="List as many GPUs in CUDA_VISIBLE_DEVICES as the node has ranks, or start fewer ranks.",
                evidence=(Evidence("CUDA_VISIBLE_DEVICES", variable, f"{ranks_on[node]} GPUs"),),
            )
