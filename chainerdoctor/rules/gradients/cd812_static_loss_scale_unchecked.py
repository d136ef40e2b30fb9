"""CD812: static loss scale unchecked."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gradients import OptimizerSettings
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD812", Severity.INFO, needs=(OptimizerSettings,), since="0.1")
def static_loss_scale_unchecked(snapshot: Snapshot) -> Iterator[Finding]:
    """float16 gradients are scaled by a constant, and nothing looks whether they overflow.

    Why it hurts: Chainer skips updates with infinite gradients only while scaling is dynamic; with a constant one a single
    batch with larger gradients makes every parameter NaN.

    How to mend it: optimizer.loss_scaling() without a scale.

    Source: Optimizer.check_nan_in_grads of Chainer 7.8.1 returns at once unless scaling is dynamic (seen running).
    """
    for seen in snapshot.all(OptimizerSettings):
        settings = seen.fact
        if settings.half and settings.scaling == "static":
            yield Finding(
                where=seen.where,
                message=f"a static loss scale of {settings.static_scale:g} is never checked for overflow",
                remedy="Use optimizer.loss_scaling(): it leaves out updates that overflowed and lowers the scale.",
                evidence=(Evidence("loss scaling", f"static, {settings.static_scale:g}", "dynamic"),),
            )
