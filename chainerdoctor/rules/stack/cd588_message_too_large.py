"""CD588: message too large."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD588", Severity.ERROR, needs=(PythonLog,), since="0.1")
def message_too_large(snapshot: Snapshot) -> Iterator[Finding]:
    """An object of more than 2 GB was sent through mpi4py.

    Why it hurts: MPI counts bytes in 32 bits, and the pickled object does not fit.

    How to mend it: scatter indices or file names instead of the data (scatter_dataset with a data set that
    reads lazily), or send in parts.

    Source: mpi4py#119
    """
    return told(
        snapshot,
        ("python.pickle_limit",),
        "an object is too large for one MPI message",
        "Scatter file names or indices instead of the data itself.",
    )
