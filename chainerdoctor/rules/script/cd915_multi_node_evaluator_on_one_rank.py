"""CD915: multi node evaluator on one rank."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, is_a, on_one_rank, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD915", Severity.ERROR, needs=(ScriptFile,), since="0.1")
def multi_node_evaluator_on_one_rank(snapshot: Snapshot) -> Iterator[Finding]:
    """A multi-node evaluator is added on rank 0 alone.

    Why it hurts: the evaluator sums its results over all ranks, so rank 0 waits for the others at the end of
    the first epoch and never goes on.

    How to mend it: move trainer.extend out of the `if comm.rank == 0:`; only printing and writing belong
    there.

    Example:
        if comm.rank == 0:
            trainer.extend(evaluator)   # wrong: rank 0 waits for ever
        trainer.extend(evaluator)       # right: on every rank

    Source: reproduced on CPU with Chainer 7.8.1.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.methods("extend"):
        makers = scripts.made_by(call.args[0]) if call.args else []
        wrapped = [each for each in makers if is_a(each.names, "chainermn", "create_multi_node_evaluator")]
        if wrapped and on_one_rank(call):
            yield at(
                call,
                "the multi-node evaluator runs on rank 0 alone and waits there for the other ranks",
                "Move this trainer.extend(…) out of the block for rank 0.",
                Evidence("condition", next(g for g in call.guards if "rank" in g)),
            )
