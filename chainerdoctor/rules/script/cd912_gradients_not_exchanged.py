"""CD912: gradients not exchanged."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptCall, ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import UPDATERS, argument, at, leaf_of, scripts_of
from chainerdoctor.snapshot import Snapshot

#: Any of these shows that the script exchanges gradients, or splits the model instead of the data.
EXCHANGES = (
    "create_multi_node_optimizer",
    "allreduce_grad",
    "multi_node_mean_grad",
    "allreduce",
    "allreduce_obj",
    "multi_node_mean",
    "Allreduce",
    "MultiNodeChainList",
    "send",
    "recv",
    "pseudo_connect",
    "create_multi_node_n_step_rnn",
    "HyperOptimizer",
)


def is_optimizer(call: ScriptCall) -> bool:
    """Whether the call makes one of Chainer's own optimizers."""
    return all(name.startswith("chainer.optimizers.") and "(" not in name for name in call.names)


@rule("CD912", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def gradients_not_exchanged(snapshot: Snapshot) -> Iterator[Finding]:
    """Several ranks train, but no multi-node optimizer exchanges their gradients.

    Why it hurts: every rank trains a model of its own on its shard; the program ends with exit code 0 and the
    weights differ by rank.

    How to mend it: wrap the optimizer: `optimizer = chainermn.create_multi_node_optimizer(optimizer, comm)`.

    Example:
        optimizer = chainer.optimizers.Adam()                     # wrong: each rank learns alone
        optimizer = chainermn.create_multi_node_optimizer(        # right
            chainer.optimizers.Adam(), comm)

    Source: reproduced on CPU with Chainer 7.8.1: two ranks end with different weights.
    """
    scripts = scripts_of(snapshot)
    for comm in scripts.distributed():
        if (
            scripts.splits_the_model(comm.path)
            or scripts.mentions(comm.path, *EXCHANGES)
            or scripts.inside(scripts.methods(*EXCHANGES), comm.path)
        ):
            continue
        for call in scripts.inside(scripts.of("chainer", *UPDATERS), comm.path):
            given = argument(call, 1, "optimizer")
            if call.path != comm.path or given is None or not given.certain:
                continue
            makers = scripts.made_by(given)
            if makers and all(is_optimizer(each) for each in makers):
                yield at(
                    call,
                    "the updater gets a plain optimizer, so that no rank ever sees another's gradients",
                    "Write optimizer = chainermn.create_multi_node_optimizer(optimizer, comm) before optimizer.setup(model).",
                    Evidence("communicator", f"line {comm.line}"),
                    Evidence("optimizer", f"{leaf_of(makers[0].names[0])}, line {makers[0].line}"),
                )
