"""CD310: nccl known broken."""

from __future__ import annotations

from typing import Dict, Iterator

from chainerdoctor.facts.fabric import NvLink
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.host import OperatingSystem, Processors
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.facts.stack import NcclVersion
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.nccl_settings import loaded_version, settings_of
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.nccl_releases import (
    BROKEN_RANGES,
    within,
)

#: Ranks from which a job counts as large for the fault of that name.
_MANY_RANKS = 256


def circumstances(snapshot: Snapshot) -> Dict[str, str]:
    """Which conditions of the table hold here, each with the words that say why."""
    found = {"always": "on any machine"}
    gpus = snapshot.all(Gpu)
    nodes = len(snapshot.nodes)
    counts = {seen.node: seen.fact.local_size or 1 for seen in snapshot.all(LaunchedAs)}
    if nodes > 1 and counts and set(counts.values()) == {1}:
        found["one_gpu_per_node"] = f"one rank on each of {nodes} nodes"
    if any(seen.fact.size >= _MANY_RANKS for seen in snapshot.all(LaunchedAs)):
        found["many_ranks"] = f"{max(s.fact.size for s in snapshot.all(LaunchedAs))} ranks"
    down = [seen for seen in snapshot.all(NvLink) if not seen.fact.active]
    if down and any(seen.fact.active for seen in snapshot.all(NvLink)):
        found["nvlink_down"] = f"{len(down)} NVLinks are down"
    forced = [s for s in settings_of(snapshot, "NCCL_PROTO") if s.value.upper() == "LL128"]
    if forced:
        found["ll128"] = "NCCL_PROTO=LL128"
    models = {seen.fact.model for seen in snapshot.all(Processors)}
    if nodes > 1 and len(models) > 1:
        found["mixed_cpus"] = " and ".join(sorted(models)[:2])
    capabilities = {seen.fact.compute_capability for seen in gpus} - {None}
    if len(capabilities) > 1:
        found["mixed_architectures"] = " and ".join(sorted({seen.fact.name for seen in gpus})[:2])
    containers = {seen.fact.container for seen in snapshot.all(OperatingSystem)}
    if "docker" in containers:
        found["docker"] = "the ranks run in Docker"
    if len(gpus) == 2 and capabilities == {(9, 0)}:
        found["hopper_pair"] = f"two {gpus[0].fact.name}"
    return found


@rule("CD310", Severity.WARNING, needs=(NcclVersion,), since="0.1")
def nccl_known_broken(snapshot: Snapshot) -> Iterator[Finding]:
    """The NCCL that is loaded has a known fault that shows on this hardware and in this use.

    Why it hurts: the fault is NVIDIA's own and comes without a message: a hang after days, or results that are slightly
    wrong.

    How to mend it: install a release in which it is fixed, the same on all nodes: pip install nvidia-nccl-cu12==VERSION.

    Source: NVIDIA/nccl release notes; the table of ranges is chainerdoctor/tables/nccl_releases.py.
    """
    version = loaded_version(snapshot)
    if version is None:
        return
    conditions = circumstances(snapshot)
    for row in BROKEN_RANGES:
        if row.applies in conditions and within(version, row.first, row.fixed):
            yield Finding(
                where=", ".join(snapshot.nodes[:3])
                + (f" and {len(snapshot.nodes) - 3} more" if len(snapshot.nodes) > 3 else ""),
                message=f"NCCL {version}: {row.effect}",
                remedy=f"Install NCCL {row.fixed} or newer on all nodes: pip install 'nvidia-nccl-cu12>={row.fixed}'.",
                evidence=(
                    Evidence("NCCL", version, f"{row.fixed} or newer"),
                    Evidence("it applies", conditions[row.applies]),
                ),
            )
