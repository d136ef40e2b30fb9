"""CD312: nccl cu13 on old gpu."""

from __future__ import annotations

from typing import Dict, Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.stack import Distribution
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.nccl_releases import (
    CUDA_13_FLOOR,
)


@rule(
    "CD312",
    Severity.ERROR,
    needs=(
        Distribution,
        Gpu,
    ),
    since="0.1",
)
def nccl_cu13_on_old_gpu(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL's wheel for CUDA 13 is installed, and the GPU is older than what it has code for.

    Why it hurts: NCCL built with CUDA 13 holds nothing below compute capability 7.5: on Volta and Pascal every collective
    fails with "no kernel image is available for execution on the device".

    How to mend it: install the wheel for CUDA 12 instead: pip uninstall nvidia-nccl-cu13; pip install nvidia-nccl-cu12.

    Source: NCCL makefiles/common.mk; CUDA 13.0 release notes.
    """
    old: Dict[str, str] = {}
    for seen in snapshot.all(Gpu):
        capability = seen.fact.compute_capability
        if capability is not None and capability < CUDA_13_FLOOR:
            old.setdefault(seen.node, f"{seen.fact.name} ({capability[0]}.{capability[1]})")
    wheels = [s for s in snapshot.all(Distribution) if s.fact.name == "nvidia-nccl-cu13" and s.node in old]
    if wheels:
        yield Finding(
            where=places(wheels),
            message=f"nvidia-nccl-cu13 has no code for {old[wheels[0].node]}",
            remedy="Run pip uninstall nvidia-nccl-cu13, then pip install --force-reinstall nvidia-nccl-cu12.",
            evidence=(Evidence("nvidia-nccl-cu13", wheels[0].fact.version, "nvidia-nccl-cu12"),),
        )
