"""CD502: numpy too new."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import import_error, install_command, version_tuple
from chainerdoctor.snapshot import Snapshot


@rule("CD502", Severity.ERROR, needs=(PackageSurvey,), since="0.1")
def numpy_too_new(snapshot: Snapshot) -> Iterator[Finding]:
    """NumPy 2 is installed beside Chainer.

    Why it hurts: Chainer 7.8.1 reads np.sctypes on import, which NumPy 2.0 removed: import chainer raises
    AttributeError. Installing cupy-cuda12x without a version often brings it: CuPy 14 needs NumPy 2.

    How to mend it: pip install numpy==1.23.5 and a CuPy that accepts it (13.6.0 or 12.3.0), or run the script with
    chainerdoctor run --compat.

    Source: chainer issue 8632.
    """
    with_chainer = {(s.node, s.rank) for s in snapshot.all(Distribution) if s.fact.name == "chainer"}
    new = [
        s
        for s in snapshot.all(Distribution)
        if s.fact.name == "numpy" and version_tuple(s.fact.version) >= (2,) and (s.node, s.rank) in with_chainer
    ]
    for version, sightings in groups(new, lambda fact: fact.version).items():
        yield Finding(
            where=places(sightings),
            message=f"NumPy {version} breaks Chainer 7.8.1 on import",
            remedy=install_command(snapshot, sightings[0].node),
            evidence=(Evidence("numpy", version, "1.23.5"), *import_error(snapshot, sightings[0], "chainer")),
        )
