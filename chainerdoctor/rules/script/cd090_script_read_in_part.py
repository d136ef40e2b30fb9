"""CD090: script read in part."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile, ScriptsRead
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD090", Severity.INFO, needs=(ScriptsRead,), since="0.1")
def script_read_in_part(snapshot: Snapshot) -> Iterator[Finding]:
    """A script or notebook could be read only in part, or not at all.

    Why it hurts: what was not read was not judged: "nothing found" then covers only the rest.

    How to mend it: mend the file that cannot be parsed (CD900 and CD901 name them); cells in another language
    are left out of judgement.
    """
    for sighting in snapshot.all(ScriptFile):
        file = sighting.fact
        if file.cells_left_out:
            yield Finding(
                file.path,
                "cells of this notebook were not judged",
                "Convert them to plain Python if they hold training code.",
                (Evidence("cells left out", str(file.cells_left_out)),),
                Location(file.path),
            )
