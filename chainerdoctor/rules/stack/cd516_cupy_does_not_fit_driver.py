"""CD516: cupy does not fit driver."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import cupy_cuda_major, install_command
from chainerdoctor.snapshot import Snapshot


@rule("CD516", Severity.ERROR, needs=(PackageSurvey, GpuDriver), since="0.1")
def cupy_does_not_fit_driver(snapshot: Snapshot) -> Iterator[Finding]:
    """The CuPy package is made for a newer CUDA than the driver supports.

    Why it hurts: the first call ends in cudaErrorInsufficientDriver, or CuPy does not import. Within one major
    version any driver of that major works; across majors none does.

    How to mend it: install the CuPy for the driver's CUDA (the remedy names the whole set), or a newer driver.

    Source: CUDA compatibility guide, minor version compatibility; chainer issues 4166 and 8623.
    """
    cuda = {seen.node: seen.fact for seen in snapshot.all(GpuDriver)}
    wrong = []
    for seen in snapshot.all(Distribution):
        major = cupy_cuda_major(seen.fact.name)
        if major is not None and seen.node in cuda and major > cuda[seen.node].cuda[0]:
            wrong.append(seen)
    for package, sightings in groups(wrong, lambda fact: f"{fact.name} {fact.version}").items():
        driver = cuda[sightings[0].node]
        yield Finding(
            where=places(sightings),
            message=f"{package} needs a newer driver than {driver.version}",
            remedy=install_command(snapshot, sightings[0].node),
            evidence=(Evidence("the driver supports", f"CUDA {driver.cuda[0]}.{driver.cuda[1]}", package.split()[0]),),
        )
