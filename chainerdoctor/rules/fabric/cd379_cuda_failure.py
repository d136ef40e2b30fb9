"""CD379: cuda failure."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD379", Severity.ERROR, needs=(NcclLog,), since="0.1")
def cuda_failure(snapshot: Snapshot) -> Iterator[Finding]:
    """A CUDA call inside NCCL failed.

    Why it hurts: the communicator is unusable from then on; often the fault lies earlier, in a kernel of the
    program, and NCCL is the first to notice.

    How to mend it: for 'out of memory' leave NCCL some hundred MiB (chainer's memory pool: set_limit); for
    'illegal memory access' run with CUDA_LAUNCH_BLOCKING=1 to find the kernel; for 'driver version is
    insufficient' install a newer driver.

    Source: NVIDIA/nccl src/include/checks.h
    """
    return told(
        snapshot,
        ("nccl.cuda_failure", "nccl.out_of_memory", "nccl.driver_too_old", "nccl.fatal_error"),
        "a CUDA call inside NCCL failed",
        "Read the error's name in the line: leave more GPU memory for 'out of memory', find the faulty kernel "
        "with CUDA_LAUNCH_BLOCKING=1 for others.",
    )
