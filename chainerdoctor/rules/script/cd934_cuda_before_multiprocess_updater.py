"""CD934: cuda before multiprocess updater."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptCall, ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, leaf_of, scripts_of
from chainerdoctor.snapshot import Snapshot


def touches_gpu(call: ScriptCall) -> bool:
    """Whether the call makes a CUDA context for certain."""
    name = call.names[0]
    leaf = leaf_of(name)
    if leaf == "to_gpu" and name.startswith("chainer."):
        return True
    if leaf == "use" and "get_device_from_id(" in name:
        return all(each.literal != "-1" for each in call.args)
    return name.startswith("cupy.") and leaf in ("array", "zeros", "ones", "asarray", "empty", "arange")


@rule("CD934", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def cuda_before_multiprocess_updater(snapshot: Snapshot) -> Iterator[Finding]:
    """The GPU is used before MultiprocessParallelUpdater starts its processes.

    Why it hurts: the updater refuses with "The CUDA context has been already initialized" (or, with older
    versions, its workers crash).

    How to mend it: create the updater before anything touches the GPU, or call
    multiprocessing.set_start_method('forkserver') first.

    Source: chainer/training/updaters/multiprocess_parallel_updater.py of Chainer 7.8.1; issue 4717 of
    chainer/chainer.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.of("chainer", "MultiprocessParallelUpdater"):
        if scripts.mentions(call.path, "set_start_method"):
            continue
        earlier = [
            c
            for c in scripts.calls.of_file(call.path)
            if c.scope == call.scope and c.number < call.number and touches_gpu(c)
        ]
        sure = [c for c in earlier if set(c.guards) <= set(call.guards)]
        if sure:
            yield at(
                call,
                "the GPU is already in use when this updater starts its processes",
                "Move the updater before the first use of the GPU.",
                Evidence("first use", f"line {sure[0].line}: {leaf_of(sure[0].names[0])}"),
            )
