"""CD510: cuda library not found."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.consensus import places
from chainerdoctor.facts import Fact
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.stack import ChainerCuda, ImportOutcome
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import install_command, library_remedy, missing_library
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD510", Severity.WARNING, needs=(ImportOutcome,), since="0.1")
def cuda_library_not_found(snapshot: Snapshot) -> Iterator[Finding]:
    """CuPy does not import because a CUDA library is not found.

    Why it hurts: the wheel's CUDA is not the installed one, or its libraries are not where the loader looks. On a
    GPU node Chainer then silently says that CUDA is not available (CD508).

    How to mend it: install NVIDIA's wheels of that CUDA and add their lib folders to LD_LIBRARY_PATH before Python
    starts, or take the CuPy package for the CUDA that is installed.

    Source: reproduced with cupy-cuda12x 13.6.0: Chainer needs libcublas.so.12, and NVIDIA's wheels in site-packages
    are not found by themselves.
    """
    broken = [
        s
        for s in snapshot.all(ImportOutcome)
        if s.fact.module == "cupy" and not s.fact.ok and missing_library(s.fact.error) not in (None, "libcuda.so.1")
    ]
    hidden = [
        s for s in snapshot.all(ChainerCuda) if missing_library(s.fact.hidden_error) not in (None, "libcuda.so.1")
    ]
    errors = {(s.node, s.rank): s.fact.hidden_error for s in hidden}
    errors.update({(s.node, s.rank): s.fact.error for s in broken})
    by_library: Dict[str, List[Sighting[Fact]]] = {}
    every: List[Sighting[Fact]] = [*broken, *hidden]
    with_gpus = {seen.node for seen in snapshot.all(GpuDriver) if seen.fact.gpus}
    for seen in every:
        library = missing_library(errors[seen.node, seen.rank])
        # On a node with GPUs the same error is CD508's, which is graver.
        if library is not None and seen.node not in with_gpus:
            by_library.setdefault(library, []).append(seen)
    for library, sightings in by_library.items():
        error = errors[sightings[0].node, sightings[0].rank]
        yield Finding(
            where=places(sightings),
            message=f"CuPy needs {library}, which is not found",
            remedy=library_remedy(error) or install_command(snapshot, sightings[0].node),
            evidence=(Evidence("the error", error, "CuPy imports"),),
        )
