"""CD517: library mapped twice."""

from __future__ import annotations

from typing import Dict, Iterator, List, Optional, Tuple

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import ImportOutcome, MappedLibrary
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD517", Severity.WARNING, needs=(ImportOutcome,), since="0.1")
def library_mapped_twice(snapshot: Snapshot) -> Iterator[Finding]:
    """One process has mapped two different files of the same CUDA library.

    Why it hurts: CuPy and another package (or LD_LIBRARY_PATH) each brought their own libcudart, libcublas or
    libnccl. Handles of one are passed to the other, which crashes or, with two NCCLs, hangs.

    How to mend it: take the folders out of LD_LIBRARY_PATH that the environment does not need; the evidence names
    both files.
    """
    by_process: Dict[Tuple[str, Optional[int], str], List[Sighting[MappedLibrary]]] = {}
    for seen in snapshot.all(MappedLibrary):
        by_process.setdefault((seen.node, seen.rank, seen.fact.name), []).append(seen)
    by_files: Dict[Tuple[str, ...], List[Sighting[MappedLibrary]]] = {}
    for sightings in by_process.values():
        paths = tuple(sorted({s.fact.path for s in sightings}))
        if len(paths) > 1:
            by_files.setdefault(paths, []).append(sightings[0])
    for paths, sightings in by_files.items():
        yield Finding(
            where=places(sightings),
            message=f"{sightings[0].fact.name} is loaded twice, from different files",
            remedy="Remove the folder that the environment does not need from LD_LIBRARY_PATH.",
            evidence=tuple(Evidence("mapped", path, "one file") for path in paths),
        )
