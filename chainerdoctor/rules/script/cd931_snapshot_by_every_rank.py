"""CD931: snapshot by every rank."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, is_a, on_some_ranks, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD931", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def snapshot_by_every_rank(snapshot: Snapshot) -> Iterator[Finding]:
    """Every rank writes snapshots under the same name.

    Why it hurts: all ranks write one file at the same time, without an error; the file can hold a mixture or
    be cut.

    How to mend it: extend with it on rank 0 alone, or wrap it: chainermn.extensions.multi_node_snapshot(comm,
    snapshot, replica_sets).

    Example:
        trainer.extend(extensions.snapshot())        # wrong: all ranks write the same file
        if comm.rank == 0:
            trainer.extend(extensions.snapshot())    # right

    Source: reproduced on CPU with Chainer 7.8.1; issue 7947 of chainer/chainer.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.methods("extend"):
        if not call.args or on_some_ranks(call) or not scripts.communicators(call.path):
            continue
        makers = scripts.made_by(call.args[0])
        if len(makers) != 1 or not any(
            is_a(makers[0].names, "chainer", leaf) for leaf in ("snapshot", "snapshot_object")
        ):
            continue
        made = makers[0]
        name = argument(made, 1, "filename")
        if made.open or on_some_ranks(made) or (name is not None and name.literal is None):
            continue
        yield at(
            call,
            "every rank writes this snapshot under the same name",
            "Put it under 'if comm.rank == 0:', or use chainermn.extensions.multi_node_snapshot.",
            Evidence("file", name.literal if name is not None and name.literal else "snapshot_iter_…"),
        )
