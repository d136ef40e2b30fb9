"""CD815: eps vanishes in half precision."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gradients import OptimizerSettings
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD815", Severity.ERROR, needs=(OptimizerSettings,), since="0.1")
def eps_vanishes_in_half_precision(snapshot: Snapshot) -> Iterator[Finding]:
    """An optimizer adds its eps to float16 numbers, in which it is zero.

    Why it hurts: eps is there against a division by zero; without it the first zero gradient makes a parameter NaN.

    How to mend it: keep a float32 copy of the parameters (optimizer.use_fp32_update()), or a larger eps.

    Source: AdaGrad, RMSprop and SMORMS3 of Chainer 7.8.1 compute in the parameter's type (tried); Adam does not.
    """
    for seen in snapshot.all(OptimizerSettings):
        settings = seen.fact
        if settings.eps_lost is not None:
            yield Finding(
                where=seen.where,
                message=f"eps = {settings.eps_lost:g} is 0 in float16",
                remedy="Call optimizer.use_fp32_update(), or set eps to 1e-4 or more.",
                evidence=(Evidence(settings.optimizer_class, f"eps {settings.eps_lost:g}", "above 3e-8, better 1e-4"),),
            )
