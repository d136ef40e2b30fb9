"""CD522: cupy differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import Distribution
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD522", Severity.ERROR, needs=(Distribution,), since="0.1")
def cupy_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank has another CuPy package or version than the others.

    Why it hurts: each CuPy is built for one CUDA and one NCCL. Ranks with different ones load different NCCLs,
    compile different kernels and fail at the first collective.

    How to mend it: install from one requirements file on every node, or share one environment.
    """
    yield from differences(
        [seen for seen in snapshot.all(Distribution) if seen.fact.name.startswith("cupy")],
        lambda fact: f"{fact.name} {fact.version}",
        "the CuPy package",
        "Install the same CuPy package and version everywhere; pip freeze on a healthy node gives the list to copy.",
    )
