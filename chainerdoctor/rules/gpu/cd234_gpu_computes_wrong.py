"""CD234: GPU computes wrong."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.workload import GpuProduct
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import per_node
from chainerdoctor.snapshot import Snapshot


@rule("CD234", Severity.ERROR, needs=(GpuProduct,), since="0.1")
def gpu_computes_wrong(snapshot: Snapshot) -> Iterator[Finding]:
    """A product of two matrices on a GPU is not the product that the CPU gets.

    Why it hurts: no error is raised; the rank's gradients are wrong, and the all-reduce gives them to every other rank.
    The numbers are small integers, so that rounding cannot be the reason.

    How to mend it: take the GPU out of use, run dcgmi diag -r 3 on it, and have it replaced if that fails too.
    """
    yield from per_node(
        snapshot.all(GpuProduct),
        lambda fact: (f"wrong rows of {fact.order:,}", f"{fact.wrong:,}", "0") if fact.wrong else None,
        "the GPU computes wrong results",
        "Take GPU {gpus} out of use and run dcgmi diag -r 3 -i {gpus}; replace the card if that fails too.",
    )
