"""CD229: exclusive gpu shared."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.gpu import (
    GpuModes,
)
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.visible import local_ranks
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD229",
    Severity.ERROR,
    needs=(
        GpuModes,
        LaunchedAs,
    ),
    since="0.1",
)
def exclusive_gpu_shared(snapshot: Snapshot) -> Iterator[Finding]:
    """GPUs allow one process each, and the node runs more ranks than it has GPUs.

    Why it hurts: in exclusive mode the second process on a GPU fails with "all CUDA-capable devices are busy or
    unavailable".

    How to mend it: start as many ranks as GPUs, or set the default mode: nvidia-smi -c DEFAULT (root).

    Source: nvml.h, nvmlComputeMode_t.
    """
    gpus: Dict[str, List[int]] = {}
    exclusive: Dict[str, List[int]] = {}
    for seen in snapshot.all(GpuModes):
        gpus.setdefault(seen.node, []).append(seen.fact.index)
        if seen.fact.compute_mode == 3:
            exclusive.setdefault(seen.node, []).append(seen.fact.index)
    for node, ranks in local_ranks(snapshot).items():
        if node in exclusive and len(exclusive[node]) == len(gpus[node]) < ranks:
            yield Finding(
                where=node,
                message=f"{ranks} ranks on {len(gpus[node])} GPUs that allow one process each",
                remedy=f"Start at most {len(gpus[node])} ranks on this node, or run nvidia-smi -c DEFAULT as root.",
                evidence=(Evidence("compute mode", "exclusive process", "default"),),
            )
