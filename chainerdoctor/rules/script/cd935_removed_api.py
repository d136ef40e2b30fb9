"""CD935: removed api."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, everywhere, for_some_versions, leaf_of, scripts_of
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.chainer_api import KEYWORDS, METHODS, NAMES


def is_optimizer(name: str) -> bool:
    """Whether the method belongs to one of Chainer's optimizers."""
    return name.startswith(("chainer.optimizers.", "chainermn.")) and "()." in name


@rule("CD935", Severity.ERROR, needs=(ScriptFile,), since="0.1")
def removed_api(snapshot: Snapshot) -> Iterator[Finding]:
    """A script uses something that Chainer 7 does not have.

    Why it hurts: the call raises as soon as it is reached; such scripts were written for Chainer 1.

    How to mend it: write what the finding names; docs.chainer.org has the upgrade guide from version 1 to 2.

    Example:
        x = chainer.Variable(data, volatile='on')   # wrong: raises
        with chainer.no_backprop_mode():            # right
            y = model(data)

    Source: the table chainerdoctor/tables/chainer_api.py, each row checked against Chainer 7.8.1.
    """
    scripts = scripts_of(snapshot)
    for name in scripts.names:
        change = NAMES.get(name.name.replace("chainer.backends.cuda.", "chainer.cuda."))
        if change is not None and change.removed is not None and not for_some_versions(name):
            yield from everywhere(
                name,
                f"{name.name} was removed in Chainer {change.removed}",
                f"Write {change.instead} instead.",
            )
    for call in scripts.methods(*METHODS):
        method = METHODS[leaf_of(call.names[0])]
        if (
            method.removed is not None
            and all(is_optimizer(each) for each in call.names)
            and not for_some_versions(call)
        ):
            yield at(
                call,
                f"optimizers have no method {method.name} since Chainer {method.removed}",
                f"Write {method.instead} instead.",
            )
    for functions, keyword, instead in KEYWORDS:
        for call in scripts.with_keyword(keyword):
            if any(name in functions for name in call.names) and len(call.names) == 1 and not for_some_versions(call):
                yield at(
                    call,
                    f"{leaf_of(call.names[0])} does not take {keyword}= since Chainer 2.0",
                    f"Write {instead} instead.",
                )
