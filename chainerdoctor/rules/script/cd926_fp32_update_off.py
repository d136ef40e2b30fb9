"""CD926: fp32 update off."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD926", Severity.INFO, needs=(ScriptFile,), since="0.1")
def fp32_update_off(snapshot: Snapshot) -> Iterator[Finding]:
    """Updates of fp16 parameters in fp32 are switched off.

    Why it hurts: updates smaller than a thousandth of the parameter vanish in fp16, so that late training
    stands still.

    How to mend it: drop the False: `optimizer.use_fp32_update()`.

    Source: chainer/optimizer.py of Chainer 7.8.1, UpdateRule.use_fp32_update.
    """
    for call in scripts_of(snapshot).methods("use_fp32_update"):
        flag = argument(call, 0, "flag")
        if flag is not None and flag.literal == "False":
            yield at(call, "fp16 parameters are updated in fp16", "Write optimizer.use_fp32_update().")
