"""CD930: evaluation never ends."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import ITERATORS, argument, at, is_a, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD930", Severity.ERROR, needs=(ScriptFile,), since="0.1")
def evaluation_never_ends(snapshot: Snapshot) -> Iterator[Finding]:
    """An evaluator gets an iterator that repeats for ever.

    Why it hurts: the evaluator asks for batches until the iterator ends; with repeat=True (the default) it
    never does, and training stands still at the first evaluation.

    How to mend it: pass `repeat=False, shuffle=False` to the iterator of the evaluation data.

    Example:
        test_iter = SerialIterator(test, 100)                               # wrong: never ends
        test_iter = SerialIterator(test, 100, repeat=False, shuffle=False)  # right

    Source: chainer/training/extensions/evaluator.py of Chainer 7.8.1, which warns of it.
    """
    scripts = scripts_of(snapshot)
    own = {klass.name for klass in scripts.classes if "evaluate" in klass.methods}
    for call in scripts.of("chainer", "Evaluator"):
        if any(name.split(".")[-1] in own for name in call.names) or call.open:
            continue
        given = argument(call, 0, "iterator")
        makers = scripts.made_by(given) if given is not None and given.certain else []
        for made in makers:
            if len(makers) > 1 or not any(is_a(made.names, "chainer", leaf) for leaf in ITERATORS) or made.open:
                continue
            repeat = argument(made, 2, "repeat")
            if repeat is None or repeat.literal == "True":
                yield at(
                    made,
                    "this iterator repeats for ever, and an evaluator reads it to its end",
                    "Write repeat=False, shuffle=False for the evaluation's iterator.",
                    Evidence("evaluator", f"line {call.line}"),
                    Evidence("repeat", "True" if repeat else "not given, so True", "False"),
                )
