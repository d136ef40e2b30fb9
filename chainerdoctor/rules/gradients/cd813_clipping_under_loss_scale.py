"""CD813: clipping under loss scale."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gradients import OptimizerSettings
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD813", Severity.WARNING, needs=(OptimizerSettings,), since="0.1")
def clipping_under_loss_scale(snapshot: Snapshot) -> Iterator[Finding]:
    """A hook that looks at the size of gradients runs before they are divided by the loss scale.

    Why it hurts: clipping to 1 under a scale of 1024 clips to a thousandth of what is meant; updates become hundreds of
    times smaller (473 times, seen).

    How to mend it: scale the threshold with the loss scale, or write the hook so that it divides by
    optimizer._loss_scale first.

    Source: Chainer 7.8.1 divides in UpdateRule.update, after the optimizer's hooks.
    """
    for seen in snapshot.all(OptimizerSettings):
        settings = seen.fact
        if settings.scaled_hooks and (settings.scaling == "dynamic" or (settings.static_scale or 1) > 1):
            yield Finding(
                where=seen.where,
                message=f"{settings.scaled_hooks[0]} sees gradients that are still multiplied by the loss scale",
                remedy="Multiply the hook's threshold by the loss scale, or clip in a hook of your own that divides by it first.",
                evidence=(
                    Evidence("hooks", ", ".join(settings.scaled_hooks)),
                    Evidence("loss scaling", f"{settings.scaling} {settings.static_scale or ''}".strip()),
                ),
            )
