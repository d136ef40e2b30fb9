"""CD581: gpu out of memory."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD581", Severity.ERROR, needs=(PythonLog,), since="0.1")
def gpu_out_of_memory(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU's memory ran out.

    Why it hurts: the rank raises while the others wait in the next all-reduce.

    How to mend it: halve the batch size; find what holds the memory with chainerdoctor profile-memory; look for
    losses kept in a list and for evaluation without no_backprop_mode;
    cupy.get_default_memory_pool().free_all_blocks() helps against fragments.

    Source: cupy#1912, #2537
    """
    return told(
        snapshot,
        ("python.gpu_memory",),
        "a GPU ran out of memory",
        "Halve the batch size, then run chainerdoctor profile-memory train.py to see what holds the memory.",
    )
