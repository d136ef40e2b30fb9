"""CD811: loss scale ignored."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gradients import OptimizerSettings
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD811", Severity.ERROR, needs=(OptimizerSettings,), since="0.1")
def loss_scale_ignored(snapshot: Snapshot) -> Iterator[Finding]:
    """An attribute ``loss_scale`` was set on an optimizer; Chainer reads no such attribute.

    Why it hurts: the loss is not scaled, and float16 gradients underflow while the program looks as if they could not.

    How to mend it: optimizer.set_loss_scale(1024) or, better, optimizer.loss_scaling().

    Source: chainer/optimizer.py of 7.8.1 reads ``_loss_scale``, which these two methods set.
    """
    for seen in snapshot.all(OptimizerSettings):
        settings = seen.fact
        if settings.stray_loss_scale is not None:
            yield Finding(
                where=seen.where,
                message=f"optimizer.loss_scale = {settings.stray_loss_scale} does nothing",
                remedy=f"Call optimizer.set_loss_scale({settings.stray_loss_scale}), or optimizer.loss_scaling() for a dynamic one.",
                evidence=(Evidence("loss scaling in force", settings.scaling, "static or dynamic"),),
            )
