"""CD900: source unreadable."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile, ScriptUnread
from chainerdoctor.findings import Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD900",
    Severity.WARNING,
    needs=(
        ScriptFile,
        ScriptUnread,
    ),
    since="0.1",
    any_of=True,
)
def source_unreadable(snapshot: Snapshot) -> Iterator[Finding]:
    """A source cannot be read or is not valid Python.

    Why it hurts: it cannot run as it is, and nothing in it was judged.

    How to mend it: open the file at the line named; an encoding other than UTF-8 has to be named in the first
    two lines.
    """
    for sighting in snapshot.all(ScriptUnread):
        file = sighting.fact
        if not file.python2:
            yield Finding(
                f"{file.path}:{file.line}",
                file.reason,
                "Mend the file, or leave it out of the paths.",
                location=Location(file.path, file.line),
            )
