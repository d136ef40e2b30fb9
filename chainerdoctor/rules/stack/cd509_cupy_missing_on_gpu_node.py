"""CD509: cupy missing on gpu node."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import install_command
from chainerdoctor.snapshot import Snapshot


@rule("CD509", Severity.ERROR, needs=(PackageSurvey, GpuDriver), since="0.1")
def cupy_missing_on_gpu_node(snapshot: Snapshot) -> Iterator[Finding]:
    """The node has GPUs and no CuPy is installed.

    Why it hurts: Chainer then knows only the CPU: to_gpu raises, and scripts whose --gpu defaults to -1 train on
    the CPU without a word.

    How to mend it: install the CuPy wheel for the driver's CUDA, with the pins of the remedy: an unpinned one
    brings NumPy 2, which breaks Chainer.
    """
    with_gpus = {seen.node for seen in snapshot.all(GpuDriver) if seen.fact.gpus}
    have = {(s.node, s.rank) for s in snapshot.all(Distribution) if s.fact.name.startswith("cupy")}
    lacking = [s for s in snapshot.all(PackageSurvey) if s.node in with_gpus and (s.node, s.rank) not in have]
    if lacking:
        yield Finding(
            where=places(lacking),
            message="GPUs are there and CuPy is not installed",
            remedy=install_command(snapshot, lacking[0].node),
            evidence=(Evidence("cupy", "not among the installed packages", "one CuPy package"),),
        )
