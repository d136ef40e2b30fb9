"""CD311: nccl too old for gpu."""

from __future__ import annotations

from typing import Dict, Iterator, Set, Tuple

from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.stack import NcclVersion
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.nccl_settings import loaded_version
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.cuda_drivers import version_key
from chainerdoctor.tables.nccl_releases import (
    FIRST_VERSIONS,
)


@rule(
    "CD311",
    Severity.ERROR,
    needs=(
        NcclVersion,
        Gpu,
    ),
    since="0.1",
)
def nccl_too_old_for_gpu(snapshot: Snapshot) -> Iterator[Finding]:
    """The NCCL that is loaded is older than the first one that supports the GPUs.

    Why it hurts: it holds no code for the architecture: the first collective ends in "no kernel image is available", or JIT
    compilation takes minutes.

    How to mend it: install a newer NCCL on all nodes: pip install 'nvidia-nccl-cu12>=VERSION'.

    Source: NVIDIA/nccl release notes.
    """
    version = loaded_version(snapshot)
    if version is None:
        return
    old: Dict[Tuple[str, str], Set[str]] = {}
    for seen in snapshot.all(Gpu):
        row = next((r for r in FIRST_VERSIONS if (seen.fact.compute_capability or (0, 0)) >= r.capability), None)
        if row is not None and version_key(version) < version_key(row.version):
            old.setdefault((seen.fact.name, row.version), set()).add(seen.node)
    for (name, first), nodes in old.items():
        yield Finding(
            where=", ".join(sorted(nodes)[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""),
            message=f"NCCL {version} does not know {name}",
            remedy=f"Run pip install 'nvidia-nccl-cu12>={first}' in the environment of all nodes.",
            evidence=(Evidence("NCCL", version, f"{first} or newer"),),
        )
