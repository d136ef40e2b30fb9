"""CD914: evaluator of one shard."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, is_a, on_some_ranks, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD914", Severity.INFO, needs=(ScriptFile,), since="0.1")
def evaluator_of_one_shard(snapshot: Snapshot) -> Iterator[Finding]:
    """An evaluator is added on every rank without create_multi_node_evaluator.

    Why it hurts: each rank reports the result of its own shard, and what is printed is that of rank 0 alone.

    How to mend it: wrap it: `evaluator = chainermn.create_multi_node_evaluator(evaluator, comm)`, on all
    ranks.

    Source: reproduced on CPU with Chainer 7.8.1: 1.1109 instead of 1.1057.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.methods("extend"):
        makers = scripts.made_by(call.args[0]) if call.args else []
        if len(makers) != 1 or not is_a(makers[0].names, "chainer", "Evaluator") or on_some_ranks(call):
            continue
        if scripts.communicators(call.path) and not scripts.splits_the_model(call.path):
            yield at(
                call,
                "this evaluator sees the samples of its own rank only",
                "Write trainer.extend(chainermn.create_multi_node_evaluator(evaluator, comm)).",
            )
