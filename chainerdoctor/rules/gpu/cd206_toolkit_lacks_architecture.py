"""CD206: toolkit lacks architecture."""

from __future__ import annotations

from typing import Dict, Iterator, Set, Tuple

from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.stack import MappedLibrary
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.cuda_drivers import version_key
from chainerdoctor.tables.gpu_architectures import UNCONFIRMED, architecture


@rule(
    "CD206",
    Severity.ERROR,
    needs=(
        Gpu,
        MappedLibrary,
    ),
    since="0.1",
)
def toolkit_lacks_architecture(snapshot: Snapshot) -> Iterator[Finding]:
    """The CUDA runtime that is loaded does not know the architecture of a GPU.

    Why it hurts: a toolkit that is too old compiles nothing for the GPU, and one that has dropped it no longer does: kernels
    end in "no kernel image is available for execution on the device" or nvrtc refuses the architecture.

    How to mend it: install the CuPy for a CUDA that knows the GPU: chainerdoctor prescribe names the set.

    Source: CUDA Toolkit release notes, new and dropped architectures; NCCL makefiles/common.mk.
    """
    runtimes: Dict[str, str] = {}
    for seen in snapshot.all(MappedLibrary):
        if seen.fact.name == "libcudart" and seen.fact.version is not None:
            runtimes.setdefault(seen.node, seen.fact.version)
    wrong: Dict[Tuple[str, str, str], Set[Tuple[str, int]]] = {}
    for gpu in snapshot.all(Gpu):
        runtime, capability = runtimes.get(gpu.node), gpu.fact.compute_capability
        row = None if capability is None else architecture(capability)
        if runtime is None or row is None or row.source == UNCONFIRMED:
            continue
        have = version_key(runtime)[:2]
        if have < version_key(row.first) or (row.last is not None and have > version_key(row.last)):
            wanted = f"{row.first} or newer" if row.last is None else f"{row.first} to {row.last}"
            wrong.setdefault((runtime, gpu.fact.name, wanted), set()).add((gpu.node, gpu.fact.index))
    for (runtime, name, wanted), devices in wrong.items():
        nodes = sorted({node for node, _ in devices})
        yield Finding(
            where=", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""),
            message=f"CUDA {runtime} has no code for {name}",
            remedy="Install a CuPy for a CUDA that knows this GPU: chainerdoctor prescribe names the versions.",
            evidence=(Evidence("CUDA runtime", runtime, wanted),),
        )
