"""CD933: local batch statistics."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD933", Severity.INFO, needs=(ScriptFile,), since="0.1")
def local_batch_statistics(snapshot: Snapshot) -> Iterator[Finding]:
    """Batch normalization takes its statistics from the samples of one rank.

    Why it hurts: with few samples on each GPU the statistics are noisy and differ by rank: accuracy falls as
    GPUs are added.

    How to mend it: use chainermn.links.MultiNodeBatchNormalization, or turn a whole model over:
    chainermn.links.create_mnbn_model(model, comm).

    Source: issue 203 of chainer/chainermn.
    """
    scripts = scripts_of(snapshot)
    for comm in scripts.distributed():
        layers = scripts.inside(scripts.of("chainer", "BatchNormalization"), comm.path)
        if layers and not scripts.mentions(comm.path, "MultiNodeBatchNormalization", "create_mnbn_model"):
            yield at(
                layers[0],
                "batch statistics are those of one rank",
                "Write chainermn.links.create_mnbn_model(model, comm) if a rank has few samples.",
                Evidence("communicator", f"{comm.path}:{comm.line}"),
                Evidence("layers", str(len(layers))),
            )
