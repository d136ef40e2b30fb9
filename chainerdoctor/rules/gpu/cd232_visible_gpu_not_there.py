"""CD232: visible gpu not there."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.stack import EnvironmentVariable
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.visible import resolve, visible_to
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD232",
    Severity.ERROR,
    needs=(
        EnvironmentVariable,
        Gpu,
    ),
    since="0.1",
)
def visible_gpu_not_there(snapshot: Snapshot) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES names a GPU that the node does not have.

    Why it hurts: CUDA hides that entry and everything after it in the list, without a word: ranks find fewer devices, or
    none ("no CUDA-capable device is detected").

    How to mend it: list only devices of nvidia-smi -L, by number or UUID.

    Source: CUDA C++ programming guide, "CUDA Environment Variables".
    """
    wrong: Dict[Tuple[str, str, str], List[int]] = {}
    for node, rank, variable in visible_to(snapshot):
        for word in (part.strip() for part in variable.split(",")):
            # -1 ends the list on purpose: the way to hide every GPU.
            if word == "-1" or word.startswith("MIG-"):
                break
            if word and not resolve(snapshot, node, word):
                wrong.setdefault((node, variable, word), []).append(rank)
                break
    for (node, variable, word), ranks in wrong.items():
        there = sum(seen.node == node for seen in snapshot.all(Gpu))
        yield Finding(
            where=f"{node}/{rank_list(sorted(ranks))}",
            message=f"CUDA_VISIBLE_DEVICES names {word}, which is not there",
            remedy="List only devices that nvidia-smi -L shows; unset CUDA_VISIBLE_DEVICES to see all of them.",
            evidence=(Evidence("CUDA_VISIBLE_DEVICES", variable, f"0 to {there - 1}" if there else "no GPU"),),
        )
