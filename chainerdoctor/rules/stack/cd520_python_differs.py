"""CD520: python differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import Interpreter
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD520", Severity.WARNING, needs=(Interpreter,), since="0.1")
def python_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank runs another version of Python than the others.

    Why it hurts: pickled objects, and with them scatter_dataset and the object collectives of ChainerMN, need not
    survive the trip between versions, and each Python has its own set of packages.

    How to mend it: start all ranks with one interpreter.
    """
    yield from differences(
        snapshot.all(Interpreter),
        lambda fact: fact.version,
        "the Python version",
        "Start every rank with the same interpreter, for example by its full path in the mpiexec command.",
    )
