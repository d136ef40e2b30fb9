"""CD913: dataset not scattered."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import UPDATERS, at, scripts_of
from chainerdoctor.snapshot import Snapshot

SHARES = (
    "scatter_dataset",
    "scatter_index",
    "create_multi_node_iterator",
    "create_synchronized_iterator",
    "create_empty_dataset",
)


@rule("CD913", Severity.INFO, needs=(ScriptFile,), since="0.1")
def dataset_not_scattered(snapshot: Snapshot) -> Iterator[Finding]:
    """Several ranks train, and nothing seems to share the data set out.

    Why it hurts: every rank goes through the whole data set: an epoch takes as many iterations as on one GPU,
    and all ranks may see the same samples at the same time.

    How to mend it: share it out: `train = chainermn.scatter_dataset(train, comm, shuffle=True)`.

    Source: reproduced on CPU with Chainer 7.8.1: 41 iterations instead of 21.
    """
    scripts = scripts_of(snapshot)
    for comm in scripts.distributed():
        if scripts.mentions(comm.path, *SHARES) or scripts.splits_the_model(comm.path):
            continue
        if not scripts.inside(scripts.of("chainermn", "create_multi_node_optimizer"), comm.path):
            continue
        for call in scripts.of("chainer", *UPDATERS):
            if call.path == comm.path:
                yield at(
                    call,
                    "no scatter_dataset in this script: every rank seems to train on all samples",
                    "Write train = chainermn.scatter_dataset(train, comm, shuffle=True) unless the ranks share it out otherwise.",
                )
