"""CD502: numpy too new."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.stack import Distribution, Interpreter, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import import_error, install_command, under_compat, version_tuple
from chainerdoctor.snapshot import Sighting, Snapshot


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
    with_chainer -= under_compat(snapshot)
    new = [
        s
        for s in snapshot.all(Distribution)
        if s.fact.name == "numpy" and version_tuple(s.fact.version) >= (2,) and (s.node, s.rank) in with_chainer
    ]
    for version, sightings in groups(new, lambda fact: fact.version).items():
        yield Finding(
            where=places(sightings),
            message=f"NumPy {version} breaks Chainer 7.8.1 on import",
            remedy=_remedy(snapshot, sightings[0]),
            evidence=(Evidence("numpy", version, "1.23.5"), *import_error(snapshot, sightings[0], "chainer")),
        )


def _remedy(snapshot: Snapshot, place: Sighting[Distribution]) -> str:
    """Where Python is too new for an old NumPy (CD512), only the compat layer is left."""
    python = next(
        (s.fact.version for s in snapshot.all(Interpreter) if (s.node, s.rank) == (place.node, place.rank)), ""
    )
    if version_tuple(python) >= (3, 12):
        return "Run the script with chainerdoctor run --compat train.py (or use Python 3.8 to 3.11 and NumPy 1.23.5)."
    return install_command(snapshot, place.node)
