"""CD308: nccl missing."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.stack import ImportOutcome
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD308", Severity.ERROR, needs=(ImportOutcome, GpuDriver), since="0.1")
def nccl_missing(snapshot: Snapshot) -> Iterator[Finding]:
    """CuPy is installed on a machine with GPUs and cannot use NCCL.

    Why it hurts: create_communicator("pure_nccl") raises "NCCL is not available", and the other communicators copy
    gradients through the host.

    How to mend it: install NCCL's wheel for your CUDA (pip install nvidia-nccl-cu12), or python -m
    cupyx.tools.install_library --library nccl --cuda 12.x.

    Source: chainer issue 7793; CuPy wheels hold no NCCL from version 9 on.
    """
    with_gpus = {seen.node for seen in snapshot.all(GpuDriver) if seen.fact.gpus}
    works = {(s.node, s.rank) for s in snapshot.all(ImportOutcome) if s.fact.module == "cupy" and s.fact.ok}
    failed = [
        s
        for s in snapshot.all(ImportOutcome)
        if s.fact.module == "cupy.cuda.nccl" and not s.fact.ok and s.node in with_gpus and (s.node, s.rank) in works
    ]
    for error, sightings in groups(failed, lambda fact: fact.error).items():
        yield Finding(
            where=places(sightings),
            message="CuPy has no NCCL",
            remedy="Install NCCL for CuPy: pip install nvidia-nccl-cu12 (or -cu11), then check again.",
            evidence=(Evidence("import cupy.cuda.nccl", error, "works"),),
        )
