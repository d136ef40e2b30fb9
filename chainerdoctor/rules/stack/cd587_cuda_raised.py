"""CD587: cuda raised."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD587", Severity.ERROR, needs=(PythonLog,), since="0.1")
def cuda_raised(snapshot: Snapshot) -> Iterator[Finding]:
    """A CUDA call failed in Python.

    Why it hurts: the GPU's context is lost, so everything after it fails as well.

    How to mend it: 'insufficient driver': install a driver for this CUDA; 'gpu-architecture': a CuPy for a CUDA
    that knows the GPU; 'illegal address' and 'device-side assert': run with CUDA_LAUNCH_BLOCKING=1 (labels out
    of range are the usual reason).

    Source: chainer#4166; cupy#2087
    """
    return told(
        snapshot,
        ("python.driver", "python.architecture", "python.illegal_address", "python.device_assert", "python.cuda_error"),
        "a CUDA call failed",
        "Read the error's name; for illegal addresses run with CUDA_LAUNCH_BLOCKING=1, for driver errors compare "
        "nvidia-smi with cupy.show_config().",
    )
