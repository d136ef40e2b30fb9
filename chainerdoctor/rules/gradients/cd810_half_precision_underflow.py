"""CD810: half precision underflow."""

from __future__ import annotations

import math
from typing import Dict, Iterator, List, Optional, Tuple

from chainerdoctor.facts.gradients import OptimizerSettings, ParameterGradient, size_of
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: The share of a gradient's elements that float16 has lost, or nearly.
_SHARE = 0.5
_LEAST_SIZE = 64


@rule("CD810", Severity.WARNING, needs=(ParameterGradient, OptimizerSettings), since="0.1")
def half_precision_underflow(snapshot: Snapshot) -> Iterator[Finding]:
    """Most elements of a float16 gradient are below what float16 holds with all its digits.

    Why it hurts: below 6.1e-5 float16 loses digits and below 6e-8 everything; those parameters stop to learn though their
    gradient is not zero.

    How to mend it: scale the loss. optimizer.loss_scaling() finds the scale itself; optimizer.set_loss_scale(x) sets one.

    Source: IEEE 754 binary16; Micikevicius et al., Mixed Precision Training (2018), section 3.2.
    """
    scaled = {(seen.node, seen.rank, seen.fact.optimizer): seen.fact for seen in snapshot.all(OptimizerSettings)}
    groups: Dict[Tuple[str, Optional[int], int], List[ParameterGradient]] = {}
    for seen in snapshot.all(ParameterGradient):
        fact = seen.fact
        # Zeros alone may be a ReLU's; numbers that are nearly lost are not.
        lost = fact.subnormal >= _SHARE or (fact.subnormal > 0.2 and fact.zeros + fact.subnormal >= 0.9)
        if fact.dtype == "float16" and size_of(fact.shape) >= _LEAST_SIZE and lost:
            groups.setdefault((seen.node, seen.rank, fact.optimizer), []).append(fact)
    for key, parameters in groups.items():
        peak = max(each.peak for each in parameters)
        worst = max(parameters, key=lambda each: each.subnormal + each.zeros)
        # The largest power of two that leaves the largest gradient three bits below 65504.
        scale = 2.0 ** math.floor(math.log2(65504 / 8 / peak)) if peak > 0 else 1024.0
        own = scaled.get(key)
        now = "none" if own is None or own.scaling == "none" else f"{own.scaling} {own.static_scale or ''}".strip()
        yield Finding(
            where=f"{key[0]}/rank {key[1]}",
            message=f"float16 gradients of {len(parameters)} parameters underflow",
            remedy=f"Call optimizer.loss_scaling() (dynamic), or optimizer.set_loss_scale({min(scale, 2.0**15):g}).",
            evidence=(
                Evidence(worst.path, f"{worst.zeros:.0%} zero, {worst.subnormal:.0%} nearly", f"below {_SHARE:.0%}"),
                Evidence("largest gradient seen", f"{peak:.2g}", "up to 65504"),
                Evidence("loss scaling", now),
            ),
        )
