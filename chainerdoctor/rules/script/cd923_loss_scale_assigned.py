"""CD923: loss scale assigned."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


def is_scale(target: str) -> bool:
    """Whether a name is the attribute loss_scale of one of Chainer's optimizers."""
    return target.endswith("().loss_scale") and target.startswith(("chainer.optimizers.", "chainermn."))


@rule("CD923", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def loss_scale_assigned(snapshot: Snapshot) -> Iterator[Finding]:
    """A loss scale is given to an optimizer by assignment, which does nothing.

    Why it hurts: optimizers have no such attribute: the loss is not scaled, and small fp16 gradients become
    zero.

    How to mend it: call optimizer.loss_scaling(scale=128), or optimizer.loss_scaling() for a dynamic scale.

    Example:
        optimizer.loss_scale = 128            # wrong: nothing reads it
        optimizer.loss_scaling(scale=128)     # right

    Source: chainer/optimizer.py of Chainer 7.8.1, which reads _loss_scale.
    """
    for setting in scripts_of(snapshot).settings:
        if setting.targets and all(is_scale(target) for target in setting.targets):
            yield at(
                setting,
                "this assignment does not scale the loss",
                f"Write optimizer.loss_scaling(scale={setting.value.literal or '…'}).",
                Evidence("target", setting.targets[0]),
            )
