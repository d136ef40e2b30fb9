"""CD506: chainer too old for cupy."""

from __future__ import annotations

from typing import Dict, Iterator, Optional, Tuple

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import install_command, version_tuple
from chainerdoctor.snapshot import Snapshot


@rule("CD506", Severity.ERROR, needs=(PackageSurvey,), since="0.1")
def chainer_too_old_for_cupy(snapshot: Snapshot) -> Iterator[Finding]:
    """CuPy 10 or newer is installed beside a Chainer before 7.8.1.

    Why it hurts: older Chainers parse CuPy's version with NumPy's parser and raise "Not a valid numpy version
    string" on import.

    How to mend it: install chainer==7.8.1, the last release, or CuPy 9.

    Source: chainer issue 8616.
    """
    cupys: Dict[Tuple[str, Optional[int]], Distribution] = {
        (s.node, s.rank): s.fact
        for s in snapshot.all(Distribution)
        if s.fact.name.startswith("cupy") and version_tuple(s.fact.version) >= (10,)
    }
    old = [
        s
        for s in snapshot.all(Distribution)
        if s.fact.name == "chainer" and version_tuple(s.fact.version) < (7, 8, 1) and (s.node, s.rank) in cupys
    ]
    for version, sightings in groups(old, lambda fact: fact.version).items():
        cupy = cupys[sightings[0].node, sightings[0].rank]
        yield Finding(
            where=places(sightings),
            message=f"Chainer {version} cannot read the version of {cupy.name} {cupy.version}",
            remedy=install_command(snapshot, sightings[0].node),
            evidence=(Evidence("chainer", version, "7.8.1"), Evidence(cupy.name, cupy.version)),
        )
