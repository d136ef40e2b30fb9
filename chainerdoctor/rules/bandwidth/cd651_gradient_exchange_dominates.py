"""CD651: gradient exchange dominates."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.comm import Scaling
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.predictions import predictions
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: Share of the iteration that moving gradients takes. ChainerMN's paper (arXiv 1710.11351) reports 10 to 20 % lost at
#: 128 GPUs.
_SHARE = 0.25


@rule("CD651", Severity.WARNING, needs=(Scaling,), since="0.1")
def gradient_exchange_dominates(snapshot: Snapshot) -> Iterator[Finding]:
    """Moving gradients, with all ranks there, takes a large part of each iteration.

    Why it hurts: this time is lost on every GPU, and more ranks do not win it back.

    How to mend it: the finding says what float16 communication, double buffering and larger batches would give at best.
    Compare busbw with chainerdoctor allreduce-bench on the same ranks: if that is far higher, the exchange is in many
    small parts (the naive communicator) or shares the link.

    Source: ChainerMN, arXiv 1710.11351.
    """
    for seen in snapshot.all(Scaling):
        scaling = seen.fact
        share = scaling.transfer_s / scaling.iteration_s if scaling.iteration_s else 0.0
        if scaling.asynchronous or share < _SHARE:
            continue
        evidence = [
            Evidence("transfer", f"{scaling.transfer_s * 1e3:.3g} ms of {scaling.iteration_s * 1e3:.3g} ms"),
            Evidence("efficiency", f"{scaling.efficiency:.0%} on {scaling.ranks} ranks"),
        ]
        if scaling.busbw_gbs is not None:
            evidence.append(Evidence("busbw", f"{scaling.busbw_gbs:.3g} GB/s with {scaling.size_bytes:,} bytes"))
        for name, (iteration_s, efficiency) in predictions(scaling).items():
            evidence.append(
                Evidence(f"at best with {name}", f"{iteration_s * 1e3:.3g} ms, efficiency {efficiency:.0%}")
            )
        yield Finding(
            where=f"{scaling.ranks} ranks",
            message=f"moving gradients takes {share:.0%} of each iteration",
            remedy="Send gradients as float16 (allreduce_grad_dtype), use double_buffering=True, or larger batches.",
            evidence=tuple(evidence),
        )
