"""CD080: log read in part."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LogFile, LogsRecognised
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD080", Severity.INFO, needs=(LogsRecognised,), since="0.1")
def log_read_in_part(snapshot: Snapshot) -> Iterator[Finding]:
    """A log could be read only in part, or was not recognised at all.

    Why it hurts: what was not read was not judged: a healthy verdict then covers only the rest.

    How to mend it: hand over the whole file; a gzip file that is still being written is cut, so wait or copy
    it.
    """
    for sighting in snapshot.all(LogFile):
        file = sighting.fact
        for damage in file.damage:
            yield Finding(
                file.path,
                "the log was read only in part",
                "Hand over the whole file; a gzip file that is still written to is cut.",
                (Evidence("read", f"{file.lines:,} lines", damage),),
                Location(file.path),
            )
