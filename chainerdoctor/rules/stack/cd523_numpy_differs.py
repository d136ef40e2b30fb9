"""CD523: numpy differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import Distribution
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD523", Severity.WARNING, needs=(Distribution,), since="0.1")
def numpy_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank has another version of NumPy than the others.

    Why it hurts: casting rules and defaults change between NumPy versions, so ranks can compute slightly different
    numbers, and arrays pickled by 2.x do not load in 1.x.

    How to mend it: install from one requirements file on every node, or share one environment.
    """
    yield from differences(
        [seen for seen in snapshot.all(Distribution) if seen.fact.name == "numpy"],
        lambda fact: fact.version,
        "the NumPy version",
        "Install the same version everywhere; pip freeze on a healthy node gives the list to copy.",
    )
