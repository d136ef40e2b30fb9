"""CD924: fp16 without loss scaling."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD924", Severity.INFO, needs=(ScriptFile,), since="0.1")
def fp16_without_loss_scaling(snapshot: Snapshot) -> Iterator[Finding]:
    """A model computes in fp16 and its loss is not scaled.

    Why it hurts: gradients below 6e-8 are zero in fp16: training gets slower to converge, or stalls, without
    an error.

    How to mend it: call `optimizer.loss_scaling()` after the optimizer is made.

    Source: chainer/optimizer.py of Chainer 7.8.1; the smallest fp16 number is 2**-24.
    """
    scripts = scripts_of(snapshot)
    for setting in scripts.settings:
        kinds = ("numpy.float16", "cupy.float16", "chainer.mixed16", "'float16'", "'mixed16'")
        half = bool(set(kinds) & {*setting.value.names, setting.value.literal})
        if not half or not set(setting.targets) & {"chainer.global_config.dtype", "chainer.config.dtype"}:
            continue
        optimizes = [
            c for c in scripts.inside(scripts.calls, setting.path) if c.names[0].startswith("chainer.optimizers.")
        ]
        if optimizes and not scripts.inside(scripts.methods("loss_scaling", "set_loss_scale"), setting.path):
            yield at(
                setting, "fp16 gradients are not scaled", "Write optimizer.loss_scaling() once the optimizer is made."
            )
