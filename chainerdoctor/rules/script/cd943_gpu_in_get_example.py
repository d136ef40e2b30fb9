"""CD943: gpu in get example."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, is_a, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD943", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def gpu_in_get_example(snapshot: Snapshot) -> Iterator[Finding]:
    """A data set computes on the GPU inside the workers of a MultiprocessIterator.

    Why it hurts: a CUDA context cannot be used after fork: the worker raises or crashes, and the iterator
    waits for it.

    How to mend it: compute with NumPy in get_example and let the updater move the batch to the GPU.

    Source: issue 2962 of chainer/chainer.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.calls:
        owner, _, method = call.scope.rpartition(".")
        name = call.names[0]
        on_gpu = (name.startswith("cupy.") and "(" not in name) or is_a(call.names, "chainer", "to_gpu")
        if method != "get_example" or not on_gpu or len(call.names) > 1 or call.guards:
            continue
        # The data set has to reach such an iterator for certain.
        for iterator in scripts.inside(scripts.of("chainer", "MultiprocessIterator"), call.path):
            data = argument(iterator, 0, "dataset")
            if data is not None and any(each.endswith(f".{owner}()") for each in data.names):
                yield at(
                    call,
                    "this runs on the GPU in a forked worker",
                    "Write it with NumPy; the updater's converter moves batches to the GPU.",
                    Evidence("iterator", f"{iterator.path}:{iterator.line}"),
                )
                break
