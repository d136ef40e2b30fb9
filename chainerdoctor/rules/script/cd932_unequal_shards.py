"""CD932: unequal shards."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import UPDATERS, argument, at, is_a, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD932", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def unequal_shards(snapshot: Snapshot) -> Iterator[Finding]:
    """Shards of unequal length feed an ordinary updater.

    Why it hurts: ranks with a sample less finish their epoch an iteration earlier and start the next
    collective alone: the job hangs at the end of an epoch.

    How to mend it: leave force_equal_length at True for training data.

    Source: reproduced on CPU with Chainer 7.8.1; issue 7305 of chainer/chainer.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.of("chainer", *UPDATERS):
        given = argument(call, 0, "iterator")
        for iterator in scripts.made_by(given) if given is not None else []:
            data = argument(iterator, 0, "dataset")
            for made in scripts.made_by(data) if data is not None else []:
                equal = made.keywords.get("force_equal_length")
                if is_a(made.names, "chainermn", "scatter_dataset") and equal is not None and equal.literal == "False":
                    yield at(
                        made,
                        "ranks get shards of unequal length and do not end their epochs together",
                        "Drop force_equal_length=False for the training data.",
                        Evidence("updater", f"line {call.line}"),
                    )
