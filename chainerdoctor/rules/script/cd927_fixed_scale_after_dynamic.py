"""CD927: fixed scale after dynamic."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import Calls, argument, at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD927", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def fixed_scale_after_dynamic(snapshot: Snapshot) -> Iterator[Finding]:
    """A fixed loss scale is set on an optimizer whose scale is already dynamic.

    Why it hurts: the dynamic scaling stays on: the fixed value is changed again after the first update.

    How to mend it: keep one of them: loss_scaling() for a dynamic scale, loss_scaling(scale=…) for a fixed
    one.

    Source: chainer/optimizer.py of Chainer 7.8.1: set_loss_scale leaves _loss_scaling_is_dynamic as it is.
    """
    scripts = scripts_of(snapshot)
    dynamic = Calls(c for c in scripts.methods("loss_scaling") if argument(c, 1, "scale") is None and not c.open)
    fixed = [c for c in scripts.methods("loss_scaling") if argument(c, 1, "scale") is not None]
    for call in [*scripts.methods("set_loss_scale"), *fixed]:
        mine = {made.number for made in scripts.made_by(call.receiver)}
        for before in dynamic.of_file(call.path):
            if before.scope != call.scope or before.number > call.number or not set(before.guards) <= set(call.guards):
                continue
            if mine and mine == {made.number for made in scripts.made_by(before.receiver)}:
                yield at(
                    call,
                    "the fixed loss scale does not last, since dynamic scaling is on",
                    "Keep either loss_scaling() or loss_scaling(scale=…), not both.",
                    Evidence("dynamic scaling", f"line {before.line}"),
                )
                break
