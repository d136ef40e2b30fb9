"""CD945: losses kept."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptCall, ScriptFile, ScriptKept
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import leaf_of, scripts_of
from chainerdoctor.snapshot import Snapshot


def same_place(call: ScriptCall, kept: ScriptKept) -> bool:
    """Whether a call stands in the loop that keeps the value."""
    return call.path == kept.path and call.scope == kept.scope and kept.loop in call.loops


@rule("CD945", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def losses_kept(snapshot: Snapshot) -> Iterator[Finding]:
    """A loop keeps losses as variables, and with each of them its whole graph.

    Why it hurts: memory grows by one forward pass an iteration until the GPU is full.

    How to mend it: keep the number: `total += float(loss.array)`; or call loss.unchain_backward() first.

    Example:
        total += loss                 # wrong: keeps every graph
        total += float(loss.array)    # right

    Source: issue 5935 of chainer/chainer.
    """
    scripts = scripts_of(snapshot)
    for sighting in snapshot.all(ScriptKept):
        kept = sighting.fact
        here = [c for c in scripts.methods("backward", "unchain_backward", "unchain") if same_place(c, kept)]
        named = [c for c in here if c.receiver.calls and c.receiver == kept.origin]
        # Whoever calls backward on the sum needs its graph.
        summed = [c for c in scripts.methods("backward").of_file(kept.path) if c.said == kept.holder]
        backward = [c for c in named if leaf_of(c.names[0]) == "backward" and c.loops and c.loops[-1] == kept.loop]
        cut = [c for c in here if leaf_of(c.names[0]) != "backward"]
        # A list of losses is often there to be summed and differentiated later, which cannot be told from here.
        if backward and not cut and not summed and kept.how == "+=":
            yield Finding(
                f"{kept.path}:{kept.line}",
                f"{kept.holder} keeps {kept.value}, a variable with its graph, from every turn of the loop",
                f"Write float({kept.value}.array) instead of {kept.value}.",
                (Evidence("backward", f"line {backward[0].line}"),),
                Location(kept.path, kept.line, kept.column),
            )
