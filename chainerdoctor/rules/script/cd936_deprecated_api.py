"""CD936: deprecated api."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, for_some_versions, leaf_of, once_a_file, scripts_of
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.chainer_api import METHODS, NAMES


@rule("CD936", Severity.INFO, needs=(ScriptFile,), since="0.1")
def deprecated_api(snapshot: Snapshot) -> Iterator[Finding]:
    """A script uses something that Chainer keeps only for old scripts.

    Why it hurts: it still works, with a warning or without one, and says that the script is older than the
    Chainer it runs on.

    How to mend it: write what the finding names.

    Example:
        cuda.get_device(0).use()             # old
        cuda.get_device_from_id(0).use()     # new

    Source: the table chainerdoctor/tables/chainer_api.py, each row checked against Chainer 7.8.1.
    """
    scripts = scripts_of(snapshot)
    for name in scripts.names:
        change = NAMES.get(name.name.replace("chainer.backends.cuda.", "chainer.cuda."))
        if change is not None and change.removed is None and not for_some_versions(name):
            yield at(
                name,
                f"{name.name} is deprecated since Chainer {change.since}",
                f"Write {change.instead} instead.",
                Evidence("places", str(len(name.places))),
            )
    for call in once_a_file(scripts.methods(*(m.name for m in METHODS.values() if m.removed is None))):
        method = METHODS[leaf_of(call.names[0])]
        if call.names[0].startswith("chainer.") and not for_some_versions(call):
            yield at(
                call, f"{method.name} is deprecated since Chainer {method.since}", f"Write {method.instead} instead."
            )
