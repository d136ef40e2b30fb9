"""CD916: collective on one rank."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, leaf_of, on_one_rank, on_some_ranks, scripts_of
from chainerdoctor.snapshot import Snapshot

FUNCTIONS = ("scatter_dataset", "scatter_index", "create_multi_node_iterator", "create_synchronized_iterator")
#: Methods of a communicator in which every rank takes part.
METHODS = (
    "bcast", "bcast_obj", "bcast_data", "allreduce", "allreduce_obj", "allreduce_grad", "multi_node_mean_grad",
    "allgather", "alltoall", "gather", "gather_obj", "scatter", "barrier", "split",
)  # fmt: skip


def is_communicator(name: str) -> bool:
    """Whether a value is a ChainerMN communicator for certain."""
    return name.startswith("chainermn.") and name.endswith("create_communicator()")


@rule("CD916", Severity.ERROR, needs=(ScriptFile,), since="0.1")
def collective_on_one_rank(snapshot: Snapshot) -> Iterator[Finding]:
    """A collective call is made on rank 0 alone.

    Why it hurts: all ranks have to make it: rank 0 waits for ever, or the next collective of the others takes
    its message.

    How to mend it: call it on every rank; ranks without data pass None.

    Example:
        if comm.rank == 0:
            train = chainermn.scatter_dataset(load(), comm)   # wrong: the others never take part
        train = load() if comm.rank == 0 else None
        train = chainermn.scatter_dataset(train, comm)        # right

    Source: reproduced on CPU with Chainer 7.8.1.
    """
    scripts = scripts_of(snapshot)
    for call in [*scripts.of("chainermn", *FUNCTIONS), *scripts.methods(*METHODS)]:
        leaf = leaf_of(call.names[0])
        if not on_one_rank(call):
            continue
        if leaf in METHODS and not all(is_communicator(name) for name in call.receiver.names or ("?",)):
            continue
        others = [c for c in scripts.methods(leaf).of_file(call.path) if c.number != call.number]
        if any(not on_one_rank(other) and on_some_ranks(other) for other in others):
            continue
        yield at(
            call,
            f"{leaf} is called on rank 0 alone, but every rank has to call it",
            f"Move {leaf}(…) out of the block for rank 0; the other ranks pass None.",
            Evidence("condition", next(g for g in call.guards if "rank" in g)),
        )
