"""CD006: capture damaged."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.run import CaptureState
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD006", Severity.WARNING, needs=(CaptureState,), since="0.1")
def capture_damaged(snapshot: Snapshot) -> Iterator[Finding]:
    """A part of a run's capture cannot be read, or could not be written.

    Why it hurts: what is missing is not in the report, so that "nothing found" covers less than it seems to.

    How to mend it: a full disk and a capture over its size limit say so in the evidence; make room, or name another
    folder with --out. Where bytes are damaged, the file was cut or changed after it was written.
    """
    for seen in snapshot.all(CaptureState):
        state = seen.fact
        evidence = [Evidence("cannot be read", each) for each in state.damage[:5]]
        if len(state.damage) > 5:
            evidence.append(Evidence("and more", f"{len(state.damage) - 5} places"))
        evidence += [Evidence("not written", f"{count} records: {why}") for why, count in sorted(state.lost.items())]
        if evidence:
            yield Finding(
                where=f"{seen.where}/{state.file}" if seen.node else state.file,
                message="the capture is not whole",
                remedy="Make room where the run is recorded or name another folder with --out, and run it again.",
                evidence=tuple(evidence),
            )
