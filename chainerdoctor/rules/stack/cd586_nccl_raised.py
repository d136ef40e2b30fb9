"""CD586: nccl raised."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD586", Severity.ERROR, needs=(PythonLog,), since="0.1")
def nccl_raised(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL raised an error in Python.

    Why it hurts: the rank stops and the others wait; the text alone (unhandled system error, unhandled cuda
    error) does not say why.

    How to mend it: run again with NCCL_DEBUG=INFO and give that log to chainerdoctor check-log. After many
    communicators: call comm.finalize() when done with one.

    Source: chainermn#285, #218; chainer#6636
    """
    return told(
        snapshot,
        ("python.nccl_error",),
        "NCCL raised an error",
        "Run again with NCCL_DEBUG=INFO NCCL_DEBUG_FILE=nccl.%h.%p.log and check those logs.",
    )
