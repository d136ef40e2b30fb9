"""CD582: nccl missing."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD582", Severity.ERROR, needs=(PythonLog,), since="0.1")
def nccl_asked_for_in_vain(snapshot: Snapshot) -> Iterator[Finding]:
    """CuPy has no NCCL, which the pure_nccl communicator needs.

    Why it hurts: training on several GPUs cannot start, or falls back to copies through the host.

    How to mend it: install a CuPy wheel of the CUDA version at hand and its NCCL: python -m
    cupyx.tools.install_library --cuda 12.x --library nccl.

    Source: chainer#7793
    """
    return told(
        snapshot,
        ("python.no_nccl",),
        "CuPy has no NCCL",
        "Run python -m cupyx.tools.install_library --cuda 12.x --library nccl (or install a CuPy with NCCL).",
    )
