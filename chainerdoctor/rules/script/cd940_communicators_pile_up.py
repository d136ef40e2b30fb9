"""CD940: communicators pile up."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD940", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def communicators_pile_up(snapshot: Snapshot) -> Iterator[Finding]:
    """Communicators are created in a loop and never finalized.

    Why it hurts: each holds NCCL and MPI resources; after some dozens NCCL fails with "unhandled cuda error".

    How to mend it: create one communicator for the whole program, or call comm.finalize() before the next.

    Source: issue 6636 of chainer/chainer.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.of("chainermn", "create_communicator"):
        if call.loops and not scripts.inside(scripts.methods("finalize"), call.path):
            yield at(
                call,
                "every turn of this loop creates a communicator that is never finalized",
                "Move create_communicator out of the loop, or call comm.finalize() at its end.",
                Evidence("loop", f"line {call.loops[-1]}"),
            )
