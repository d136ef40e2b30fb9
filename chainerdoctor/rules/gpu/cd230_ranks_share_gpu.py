"""CD230: ranks share gpu."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.visible import resolve, visible_to
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD230",
    Severity.ERROR,
    needs=(
        LaunchedAs,
        Gpu,
    ),
    since="0.1",
)
def ranks_share_gpu(snapshot: Snapshot) -> Iterator[Finding]:
    """Two ranks of a node are shown the same single GPU.

    Why it hurts: NCCL refuses two ranks on one device ("Duplicate GPU detected", invalid usage), and without NCCL they halve
    each other's speed and memory.

    How to mend it: give each rank its own device, or show all devices to all ranks and let the script take
    comm.intra_rank: chainer.cuda.get_device_from_id(comm.intra_rank).use().

    Source: NVIDIA/nccl issue 280; ChainerMN tutorial, "Specifying GPUs".
    """
    by_device: Dict[Tuple[str, int], List[int]] = {}
    launchers = {(seen.node, seen.rank): seen.fact.launcher for seen in snapshot.all(LaunchedAs)}
    for node, rank, variable in visible_to(snapshot):
        devices = resolve(snapshot, node, variable)
        # Slurm may hide devices by cgroup, and then device 0 is another one for each rank.
        if len(devices) == 1 and (launchers.get((node, rank)) != "Slurm" or not variable.strip().isdigit()):
            by_device.setdefault((node, devices[0]), []).append(rank)
    for (node, device), ranks in by_device.items():
        if len(ranks) > 1:
            yield Finding(
                where=f"{node}/{rank_list(sorted(ranks))}",
                message=f"{len(ranks)} ranks are shown GPU {device} only",
                remedy="Give each rank its own CUDA_VISIBLE_DEVICES, or unset it and take comm.intra_rank as device.",
                evidence=(
                    Evidence("CUDA_VISIBLE_DEVICES", f"GPU {device} on {rank_list(sorted(ranks))}", "one rank a GPU"),
                ),
            )
