"""CD589: started in wrong order."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD589", Severity.ERROR, needs=(PythonLog,), since="0.1")
def started_in_wrong_order(snapshot: Snapshot) -> Iterator[Finding]:
    """Chainer or multiprocessing refuses what the script does, or the order in which it does it.

    Why it hurts: the script stops on every rank.

    How to mend it: set the start method once, below if __name__ == '__main__'; touch no GPU before
    MultiprocessParallelUpdater; move inputs to the model's device; use allreduce_grad_dtype with pure_nccl
    only.

    Source: chainer#4950; chainermn source
    """
    return told(
        snapshot,
        ("python.start_method", "python.cuda_before_fork", "python.mixed_arrays", "python.dtype"),
        "the script does things in an order that Chainer refuses",
        "Mend what the quoted line says: start method below __main__, no CUDA before the updater, inputs on the "
        "model's device.",
    )
