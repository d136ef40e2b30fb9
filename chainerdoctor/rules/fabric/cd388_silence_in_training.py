"""CD388: silence in training."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import StagedLine, StageLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import place, visible
from chainerdoctor.snapshot import Snapshot

#: Seconds; shorter silences are ordinary.
SHORTEST_S = 5.0


@rule("CD388", Severity.INFO, needs=(StageLog,), since="0.1")
def silence_in_training(snapshot: Snapshot) -> Iterator[Finding]:
    """The log was silent for long; the training stage in which that began is named.

    Why it hurts: a silence during a collective or a data stage is time that all ranks lose.

    How to mend it: look at what that stage does; compare with chainerdoctor profile-comm.
    """
    silences = [s.fact for s in snapshot.all(StagedLine) if s.fact.event == "silence"]
    usual = sorted(s.gap_s for s in silences)[len(silences) // 2] if silences else 0.0
    for silence in silences:
        if silence.gap_s >= SHORTEST_S and silence.gap_s >= usual:
            who = f", rank {silence.rank}" if silence.rank is not None else ""
            yield Finding(
                f"iteration {silence.iteration}, {silence.phase}{who}",
                f"the log was silent for {silence.gap_s:.1f} s from iteration {silence.iteration}, stage "
                f"{silence.phase}",
                f"Look at what {silence.phase} does there; measure it with chainerdoctor profile-comm.",
                (Evidence(f"first line after, {place(silence.path, silence.line)}", visible(silence.text)),),
                Location(silence.path, silence.line),
            )
