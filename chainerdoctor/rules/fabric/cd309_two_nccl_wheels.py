"""CD309: two nccl wheels."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from chainerdoctor.facts.stack import Distribution, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD309", Severity.WARNING, needs=(PackageSurvey,), since="0.1")
def two_nccl_wheels(snapshot: Snapshot) -> Iterator[Finding]:
    """Two NCCL wheels are installed in one environment.

    Why it hurts: nvidia-nccl-cu11, -cu12 and -cu13 unpack to the same file, nvidia/nccl/lib/libnccl.so.2. Whichever
    was installed last is what all of them load, and uninstalling one removes the file of the other.

    How to mend it: pip uninstall all of them, then install the one for your CUDA.
    """
    wheels: Dict[Tuple[str, Optional[int]], List[Sighting[Distribution]]] = {}
    for seen in snapshot.all(Distribution):
        if seen.fact.name.startswith("nvidia-nccl-cu"):
            wheels.setdefault((seen.node, seen.rank), []).append(seen)
    for sightings in wheels.values():
        if len(sightings) > 1:
            names = [f"{s.fact.name} {s.fact.version}" for s in sightings]
            yield Finding(
                where=sightings[0].where,
                message=f"{len(names)} NCCL wheels share one file",
                remedy=f"Run pip uninstall -y {' '.join(s.fact.name for s in sightings)}, then install the one for your CUDA.",
                evidence=(Evidence("installed", ", ".join(names), "one"),),
            )
