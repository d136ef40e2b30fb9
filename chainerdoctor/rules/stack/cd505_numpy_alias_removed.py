"""CD505: numpy alias removed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import version_tuple
from chainerdoctor.snapshot import Snapshot


@rule("CD505", Severity.WARNING, needs=(PackageSurvey,), since="0.1")
def numpy_alias_removed(snapshot: Snapshot) -> Iterator[Finding]:
    """NumPy 1.24 to 1.26 is installed beside Chainer.

    Why it hurts: everything works until F.resize_images is called, which uses the alias numpy.float that 1.24
    removed: AttributeError, perhaps after hours in the first evaluation.

    How to mend it: pip install numpy==1.23.5.

    Source: chainer/functions/array/resize_images.py of 7.8.1; NumPy 1.24 release notes.
    """
    with_chainer = {(s.node, s.rank) for s in snapshot.all(Distribution) if s.fact.name == "chainer"}
    hit = [
        s
        for s in snapshot.all(Distribution)
        if s.fact.name == "numpy"
        and (1, 24) <= version_tuple(s.fact.version) < (2,)
        and (s.node, s.rank) in with_chainer
    ]
    for version, sightings in groups(hit, lambda fact: fact.version).items():
        yield Finding(
            where=places(sightings),
            message=f"F.resize_images fails with NumPy {version}",
            remedy="Run pip install numpy==1.23.5.",
            evidence=(Evidence("numpy", version, "1.23.5"),),
        )
