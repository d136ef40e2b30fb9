"""CD946: workspace size too late."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD946", Severity.INFO, needs=(ScriptFile,), since="0.1")
def workspace_size_too_late(snapshot: Snapshot) -> Iterator[Finding]:
    """The size of cuDNN's workspace is set after training has begun, or beside autotune.

    Why it hurts: algorithms are chosen with the old limit and remembered; with autotune the limit decides
    which are tried.

    How to mend it: call set_max_workspace_size once, before the first forward pass.

    Source: chainer/backends/cuda.py of Chainer 7.8.1; algorithms are cached by shape and limit in cupy.cudnn.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.of("chainer", "set_max_workspace_size"):
        runs = [c for c in scripts.methods("run", "update").of_file(call.path) if c.scope == call.scope]
        late = [c for c in runs if c.number < call.number and c.names[0].startswith("chainer.")]
        if late or call.loops:
            yield at(
                call,
                "the workspace's size is set when training has already begun",
                "Move it before the first forward pass.",
                Evidence("training", f"line {late[0].line if late else call.loops[-1]}"),
            )
