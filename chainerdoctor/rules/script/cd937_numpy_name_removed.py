"""CD937: numpy name removed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import everywhere, for_some_versions, scripts_of
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.numpy_names import REMOVED


@rule("CD937", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def numpy_name_removed(snapshot: Snapshot) -> Iterator[Finding]:
    """A script uses a name that NumPy has removed.

    Why it hurts: AttributeError as soon as the line is reached, which can be hours into a run; the versions
    that Chainer 7.8.1 itself needs (below 1.24) still have most of these names.

    How to mend it: write what the finding names, which every NumPy has.

    Example:
        x = np.zeros(3, dtype=np.float)    # wrong with NumPy 1.24 and later
        x = np.zeros(3, dtype=float)       # right everywhere: the same type

    Source: release notes of NumPy 1.24 and 2.0.
    """
    for name in scripts_of(snapshot).names:
        known = REMOVED.get(name.name)
        if known is not None and not for_some_versions(name):
            versions, instead = known
            yield from everywhere(
                name,
                f"{name.name} is not in NumPy {versions}",
                f"Write {instead} instead.",
            )
