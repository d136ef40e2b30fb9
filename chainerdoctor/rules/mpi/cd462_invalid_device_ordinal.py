"""CD462: invalid device ordinal."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LogFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD462", Severity.ERROR, needs=(LogFile,), since="0.1")
def invalid_device_ordinal(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank asked for a GPU number that does not exist for it.

    Why it hurts: the rank stops at once; there are more ranks on the node than GPUs, or the scheduler shows
    each rank one GPU (then its number is 0).

    How to mend it: use as many ranks per node as GPUs (mpirun -N 4, srun --ntasks-per-node=4) and
    comm.intra_rank as the number; if each task sees a single GPU, use device 0.

    Source: chainer#6073; NVIDIA/nccl-tests#263
    """
    return told(
        snapshot,
        ("python.invalid_device", "nccl.invalid_device"),
        "a rank asked for a GPU that it does not have",
        "Start as many ranks per node as GPUs and use comm.intra_rank; with one visible GPU per task use device 0.",
    )
