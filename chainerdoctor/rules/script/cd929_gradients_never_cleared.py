"""CD929: gradients never cleared."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, once_a_file, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD929", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def gradients_never_cleared(snapshot: Snapshot) -> Iterator[Finding]:
    """Gradients are computed again and again and never cleared.

    Why it hurts: backward adds to the gradients that are there, so each update uses the sum of all batches so
    far: the loss explodes to NaN.

    How to mend it: call `model.cleargrads()` before `loss.backward()`.

    Example:
        loss = model(x, t)
        model.cleargrads()      # without this line gradients pile up
        loss.backward()
        optimizer.update()

    Source: issue 3106 of chainer/chainer; chainer/optimizer.py of Chainer 7.8.1 clears only if update is
    given a function.
    """
    scripts = scripts_of(snapshot)
    clears = ("cleargrads", "cleargrad", "zerograds", "zerograd", "zero_grads")
    for call in once_a_file(scripts.methods("update")):
        plain = not call.args and not call.keywords and not call.open and call.loops
        if not plain or not all(n.startswith("chainer.optimizers.") for n in call.names):
            continue
        backward = [
            c
            for c in scripts.methods("backward").of_file(call.path)
            if c.scope == call.scope and c.loops and c.loops[-1] in call.loops
        ]
        known = scripts.inside(scripts.methods(*clears), call.path) or scripts.mentions(call.path, *clears)
        if backward and backward[0].number < call.number and not known:
            yield at(
                call,
                "the gradients of every earlier batch are still in this update",
                "Write model.cleargrads() before loss.backward().",
                Evidence("backward", f"line {backward[0].line}"),
            )
