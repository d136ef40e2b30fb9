"""CD515: cupy private path moved."""

from __future__ import annotations

import re
from typing import Dict, Iterator, List, Tuple

from chainerdoctor.consensus import places
from chainerdoctor.facts import Fact
from chainerdoctor.facts.stack import ChainerCuda, ImportOutcome
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import install_command
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD515", Severity.ERROR, needs=(ImportOutcome,), since="0.1")
def cupy_private_path_moved(snapshot: Snapshot) -> Iterator[Finding]:
    """A module asks for a private part of CuPy that this CuPy has moved.

    Why it hurts: Chainer or an extension was written for another CuPy: "No module named 'cupy.core'" or
    "'cupy.cuda.cublas'". Chainer hides it and says that CUDA is not available.

    How to mend it: install the working set of versions that the remedy names.

    Source: cupy issues 5761 and 6248.
    """
    errors: List[Tuple[Sighting[Fact], str]] = [(s, s.fact.error) for s in snapshot.all(ImportOutcome)]
    errors += [(s, s.fact.hidden_error) for s in snapshot.all(ChainerCuda)]
    by_error: Dict[str, List[Sighting[Fact]]] = {}
    for seen, error in errors:
        # cupy.cuda.nccl is CD308's: CuPy without NCCL is no version mismatch.
        if re.search(r"No module named 'cupy\.(?!cuda\.nccl')|cannot import name '\w+' from 'cupy[.']", error):
            by_error.setdefault(error, []).append(seen)
    for error, sightings in by_error.items():
        yield Finding(
            where=places(sightings),
            message="a private part of CuPy is asked for that this version does not have",
            remedy=install_command(snapshot, sightings[0].node),
            evidence=(Evidence("the error", error, "none"),),
        )
