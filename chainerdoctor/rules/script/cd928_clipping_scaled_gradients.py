"""CD928: clipping scaled gradients."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, is_a, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD928", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def clipping_scaled_gradients(snapshot: Snapshot) -> Iterator[Finding]:
    """GradientClipping is used with loss scaling, so that it clips scaled gradients.

    Why it hurts: the hook runs before gradients are divided by the scale: with scale 128 a threshold of 1
    clips at 1/128, and training crawls.

    How to mend it: multiply the threshold by a fixed scale, or clip in a hook that reads
    optimizer._loss_scale.

    Source: chainer/optimizer.py of Chainer 7.8.1; measured: with scale 128 a hook sees a norm 128 times as
    large.
    """
    scripts = scripts_of(snapshot)
    scaled = {
        m.number: c for c in scripts.methods("loss_scaling", "set_loss_scale") for m in scripts.made_by(c.receiver)
    }
    for call in scripts.methods("add_hook"):
        hooks = scripts.made_by(call.args[0]) if call.args else []
        clips = len(hooks) == 1 and any(
            is_a(hooks[0].names, "chainer", n) for n in ("GradientClipping", "GradientHardClipping")
        )
        threshold = hooks[0].args[0] if clips and hooks[0].args else None
        both = [scaled[m.number] for m in scripts.made_by(call.receiver) if m.number in scaled]
        if clips and both and (threshold is None or threshold.literal is not None):
            yield at(
                call,
                "this hook clips gradients that are still multiplied by the loss scale",
                "Multiply its threshold by the loss scale.",
                Evidence("loss scaling", f"line {both[0].line}"),
            )
