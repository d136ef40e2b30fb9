"""CD507: two cupy packages."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import working_command
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD507", Severity.ERROR, needs=(PackageSurvey,), since="0.1")
def two_cupy_packages(snapshot: Snapshot) -> Iterator[Finding]:
    """More than one CuPy package is installed.

    Why it hurts: cupy, cupy-cuda11x, cupy-cuda12x… all unpack to the folder cupy. The mixture imports half, with
    errors such as "module 'cupy' has no attribute 'random'", and Chainer's own check does not know the newer names.

    How to mend it: uninstall every one of them, then install one.

    Source: cupy issues 3541 and 3552; CuPy's installation guide.
    """
    by_rank: Dict[Tuple[str, Optional[int]], List[Sighting[Distribution]]] = {}
    for seen in snapshot.all(Distribution):
        if seen.fact.name == "cupy" or seen.fact.name.startswith("cupy-cuda") or seen.fact.name.startswith("cupy-rocm"):
            by_rank.setdefault((seen.node, seen.rank), []).append(seen)
    by_names: Dict[str, List[Sighting[Distribution]]] = {}
    for sightings in by_rank.values():
        if len(sightings) > 1:
            by_names.setdefault(", ".join(f"{s.fact.name} {s.fact.version}" for s in sightings), []).append(
                sightings[0]
            )
    for names, sightings in by_names.items():
        packages = " ".join(part.split()[0] for part in names.split(", "))
        yield Finding(
            where=places(sightings),
            message="several CuPy packages share one folder",
            remedy=f"Run pip uninstall -y {packages}, then {working_command(snapshot, sightings[0].node)}",
            evidence=(Evidence("installed", names, "one"),),
        )
