"""CD941: cpu by default."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD941", Severity.INFO, needs=(ScriptFile,), since="0.1")
def cpu_by_default(snapshot: Snapshot) -> Iterator[Finding]:
    """The script trains on the CPU unless an option says otherwise.

    Why it hurts: a forgotten --gpu costs a night: the program runs without a word, tens of times slower.

    How to mend it: start it with --gpu 0, or make the GPU the default and the CPU the choice.

    Example:
        parser.add_argument('--gpu', type=int, default=-1)   # the CPU unless told otherwise
        parser.add_argument('--gpu', type=int, default=0)    # the GPU unless told otherwise
    """
    for call in scripts_of(snapshot).methods("add_argument"):
        flags = [each.literal for each in call.args]
        default = call.keywords.get("default")
        if (
            default is not None
            and default.literal in ("-1", "'-1'")
            and any(flag in ("'--gpu'", "'--gpus'", "'--gpu-id'") for flag in flags)
        ):
            yield at(
                call,
                "without --gpu this script computes on the CPU",
                "Start it with --gpu 0.",
                Evidence("default", default.literal),
            )
