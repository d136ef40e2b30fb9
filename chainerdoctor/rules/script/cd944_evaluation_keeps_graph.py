"""CD944: evaluation keeps graph."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD944", Severity.INFO, needs=(ScriptFile,), since="0.1")
def evaluation_keeps_graph(snapshot: Snapshot) -> Iterator[Finding]:
    """A model is evaluated in test mode while the graph for gradients is still built.

    Why it hurts: every activation stays in memory until the loss is dropped, so evaluation needs as much as
    training.

    How to mend it: add no_backprop_mode: `with chainer.using_config("train", False),
    chainer.no_backprop_mode():`.

    Source: chainer/configuration.py of Chainer 7.8.1.
    """
    scripts = scripts_of(snapshot)
    seen = set()
    for call in scripts.calls:
        test_mode = [c for c in call.contexts if c == "chainer.using_config()"]
        if not test_mode or any("no_backprop_mode" in c or "force_backprop_mode" in c for c in call.contexts):
            continue
        runs = any(
            name.startswith(("chainer.links.", "chainer.Chain()")) and name.endswith("()") for name in call.names
        )
        group = (call.path, call.scope)
        if (
            not runs
            or group in seen
            or len(test_mode) > 1
            or scripts.inside(scripts.methods("backward", "grad"), call.path)
        ):
            continue
        settings = [
            c for c in scripts.of("chainer", "using_config") if (c.path, c.scope) == group and c.number < call.number
        ]
        if settings and [each.literal for each in settings[-1].args] == ["'train'", "False"]:
            seen.add(group)
            yield at(
                call,
                "this runs in test mode, but the graph for gradients is built",
                "Write with chainer.using_config('train', False), chainer.no_backprop_mode(): around it.",
            )
