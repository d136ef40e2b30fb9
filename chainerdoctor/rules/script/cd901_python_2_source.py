"""CD901: python 2 source."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile, ScriptUnread
from chainerdoctor.findings import Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD901",
    Severity.WARNING,
    needs=(
        ScriptFile,
        ScriptUnread,
    ),
    since="0.1",
    any_of=True,
)
def python_2_source(snapshot: Snapshot) -> Iterator[Finding]:
    """A script is written in Python 2.

    Why it hurts: Chainer 7 runs on Python 3 only, so the script stops before its first line; nothing in it
    was judged.

    How to mend it: convert it once and read the difference: `python3.11 -m lib2to3 -w train.py` (Python 3.12
    and earlier have lib2to3).
    """
    for sighting in snapshot.all(ScriptUnread):
        file = sighting.fact
        if file.python2:
            yield Finding(
                f"{file.path}:{file.line}",
                "Python 2 source: it does not run on Python 3",
                f"Run python3.11 -m lib2to3 -w {file.path} and read the difference.",
                location=Location(file.path, file.line),
            )
