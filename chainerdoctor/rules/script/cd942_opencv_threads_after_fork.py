"""CD942: opencv threads after fork."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, leaf_of, once_a_file, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD942", Severity.INFO, needs=(ScriptFile,), since="0.1")
def opencv_threads_after_fork(snapshot: Snapshot) -> Iterator[Finding]:
    """OpenCV is used in a program that forks workers for its data.

    Why it hurts: threads of OpenCV do not survive fork: a worker can wait for them for ever, and the iterator
    stands still.

    How to mend it: call cv2.setNumThreads(0) before the iterator is made.

    Source: issue 2909 of chainer/chainer.
    """
    scripts = scripts_of(snapshot)
    for call in once_a_file(scripts.of("chainer", "MultiprocessIterator")):
        reached = sorted(scripts.reach(call.path))
        uses = [c for path in reached for c in scripts.calls.of_file(path) if c.names[0].startswith("cv2.")]
        if uses and not any(leaf_of(c.names[0]) == "setNumThreads" for c in uses):
            yield at(
                call,
                "the workers of this iterator inherit OpenCV's threads by fork",
                "Write cv2.setNumThreads(0) before this line.",
                Evidence("OpenCV", f"{uses[0].path}:{uses[0].line}"),
            )
