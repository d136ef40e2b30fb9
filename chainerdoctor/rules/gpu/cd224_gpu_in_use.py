"""CD224: gpu in use."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.gpu import (
    GpuProcess,
)
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list
from chainerdoctor.snapshot import Snapshot


def _told(process: GpuProcess) -> Evidence:
    held = "" if process.used_bytes is None else f", {process.used_bytes / 2**30:.1f} GiB"
    owner = {True: ", yours", False: ", another user's", None: ""}[process.own_user]
    name = process.name or "process"
    return Evidence(f"GPU {process.index}", f"{name} {process.pid}{owner}{held}", "no other process")


@rule("CD224", Severity.WARNING, needs=(GpuProcess,), since="0.1")
def gpu_in_use(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU is in use by processes that do not belong to this check.

    Why it hurts: they share memory and time: the run may end out of memory, and the shared card slows every rank.

    How to mend it: wait for them, choose other GPUs with CUDA_VISIBLE_DEVICES, or end them (kill PID) if they are left over
    from a run of yours.
    """
    by_node: Dict[str, List[GpuProcess]] = {}
    for seen in snapshot.all(GpuProcess):
        # A display server is on every workstation's card and does no harm.
        if not seen.fact.graphics and not seen.fact.of_this_check:
            by_node.setdefault(seen.node, []).append(seen.fact)
    for node, processes in by_node.items():
        mine = [str(process.pid) for process in processes if process.own_user and process.pid > 1]
        yield Finding(
            where=f"{node}/{device_list(process.index for process in processes)}",
            message="other processes use the GPU"
            if len(mine) < len(processes)
            else "other processes of yours use the GPU",
            remedy=(
                f"End what is left over from earlier runs: kill {' '.join(sorted(set(mine))[:8])}"
                if mine
                else "Choose other GPUs with CUDA_VISIBLE_DEVICES, or ask the owner."
            ),
            evidence=tuple(_told(process) for process in processes[:8]),
        )
