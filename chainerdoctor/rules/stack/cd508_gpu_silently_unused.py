"""CD508: gpu silently unused."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.stack import ChainerCuda, Distribution
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import install_command, library_remedy
from chainerdoctor.snapshot import Snapshot


@rule("CD508", Severity.ERROR, needs=(ChainerCuda, GpuDriver), since="0.1")
def gpu_silently_unused(snapshot: Snapshot) -> Iterator[Finding]:
    """The node has GPUs, CuPy is installed, and Chainer says that CUDA is not available.

    Why it hurts: Chainer swallows the error of importing CuPy, prints "CuPy: Not Available" if asked, and trains on
    the CPU or fails later with "CUDA environment is not correctly set up". The evidence holds the error that it
    hides in chainer.backends.cuda._resolution_error.

    How to mend it: most often a library of CUDA is not found: install NVIDIA's wheels for CuPy's CUDA and put their
    folders on LD_LIBRARY_PATH, or take the CuPy for the installed CUDA.

    Source: chainer issues 650 and 2785; reproduced with a missing libcublas.
    """
    with_gpus = {seen.node for seen in snapshot.all(GpuDriver) if seen.fact.gpus}
    with_cupy = {(s.node, s.rank) for s in snapshot.all(Distribution) if s.fact.name.startswith("cupy")}
    hidden = [
        s
        for s in snapshot.all(ChainerCuda)
        if not s.fact.available and s.node in with_gpus and (s.node, s.rank) in with_cupy
    ]
    for error, sightings in groups(hidden, lambda fact: fact.hidden_error or "no error was kept").items():
        yield Finding(
            where=places(sightings),
            message="Chainer cannot use the GPUs and hides why",
            remedy=library_remedy(error) or install_command(snapshot, sightings[0].node),
            evidence=(Evidence("the hidden error", error, "none"),),
        )
