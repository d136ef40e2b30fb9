"""CD525: cudnn differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import MappedLibrary
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD525", Severity.WARNING, needs=(MappedLibrary,), since="0.1")
def cudnn_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank has loaded another cuDNN than the others.

    Why it hurts: ranks then differ in speed and in rounding, and a fault shows on some nodes only.

    How to mend it: use one environment, and keep LD_LIBRARY_PATH free of other CUDA installations.
    """
    yield from differences(
        [seen for seen in snapshot.all(MappedLibrary) if seen.fact.name == "libcudnn"],
        lambda fact: fact.version,
        "the loaded cuDNN",
        "Look where the odd rank finds libcudnn (the path is in the snapshot) and remove that folder from its LD_LIBRARY_PATH.",
    )
