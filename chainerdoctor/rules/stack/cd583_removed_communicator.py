"""CD583: removed communicator."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told_each
from chainerdoctor.snapshot import Snapshot


@rule("CD583", Severity.ERROR, needs=(PythonLog,), since="0.1")
def removed_communicator(snapshot: Snapshot) -> Iterator[Finding]:
    """The script asks for a ChainerMN communicator that no longer exists.

    Why it hurts: create_communicator raises on every rank. Chainer 7 removed hierarchical, two_dimensional and
    single_node.

    How to mend it: write create_communicator('pure_nccl') for GPUs; 'naive' for the CPU.

    Source: chainermn/communicators/__init__.py of Chainer 7
    """
    return told_each(
        snapshot,
        ("python.removed_communicator",),
        ("name",),
        'there is no communicator "{name}"',
        "Write create_communicator('pure_nccl') (GPU) or 'naive' (CPU) instead of '{name}'.",
    )
