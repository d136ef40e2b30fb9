"""CD521: chainer differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import Distribution
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD521", Severity.ERROR, needs=(Distribution,), since="0.1")
def chainer_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank has another version of Chainer than the others.

    Why it hurts: Chainer versions differ in which collectives a communicator issues and in what order, so ranks
    wait for each other for ever or average different things.

    How to mend it: install from one requirements file on every node, or share one environment.
    """
    yield from differences(
        [seen for seen in snapshot.all(Distribution) if seen.fact.name == "chainer"],
        lambda fact: fact.version,
        "the Chainer version",
        "Install the same version everywhere; pip freeze on a healthy node gives the list to copy.",
    )
