"""CD584: cuda library missing."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD584", Severity.ERROR, needs=(PythonLog,), since="0.1")
def cuda_library_missing(snapshot: Snapshot) -> Iterator[Finding]:
    """A CUDA, NCCL or MPI library, or a part of CuPy, was not found at import.

    Why it hurts: CuPy is unusable; Chainer then silently says that it is not available and trains on the CPU.

    How to mend it: install exactly one CuPy wheel and one that fits the CUDA at hand: pip uninstall all cupy
    packages, then pip install cupy-cuda12x (or 11x).

    Source: cupy#5761, #3541; chainer#2785
    """
    return told(
        snapshot,
        ("python.library_missing",),
        "a library that CuPy or MPI needs was not found",
        "Uninstall every cupy package, then install the one for your CUDA (pip install cupy-cuda12x).",
    )
