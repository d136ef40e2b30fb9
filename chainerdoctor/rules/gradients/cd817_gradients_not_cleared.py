"""CD817: gradients not cleared."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gradients import GradientsKept
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: Times after which it is the program's habit.
_ENOUGH = 10


@rule("CD817", Severity.ERROR, needs=(GradientsKept,), since="0.1")
def gradients_not_cleared(snapshot: Snapshot) -> Iterator[Finding]:
    """Gradients are not cleared between an update and the next backward pass.

    Why it hurts: Chainer adds to gradients that are there, so that every update repeats all gradients before it: the
    training behaves like one with a momentum of 1.

    How to mend it: model.cleargrads() before loss.backward(), in every iteration. To gather gradients of several batches
    on purpose, clear them after each update.
    """
    for seen in snapshot.all(GradientsKept):
        if seen.fact.times >= _ENOUGH:
            yield Finding(
                where=seen.where,
                message="gradients of the iteration before are still there when backward() begins",
                remedy="Call model.cleargrads() before loss.backward() in every iteration.",
                evidence=(
                    Evidence(seen.fact.path, "had a gradient", "None after cleargrads()"),
                    Evidence("seen", f"at least {seen.fact.times} times of {seen.fact.of}"),
                ),
            )
