"""CD938: private cupy path."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, for_some_versions, scripts_of
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.cupy_paths import MOVED, MOVED_MODULES


@rule("CD938", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def private_cupy_path(snapshot: Snapshot) -> Iterator[Finding]:
    """A script imports a part of CuPy that was private and has moved.

    Why it hurts: the import fails with ModuleNotFoundError once CuPy is newer than the script.

    How to mend it: use the public name, or the new place that the finding names.

    Example:
        from cupy.cuda.cublas import sgemm                # wrong since CuPy 8
        from cupy_backends.cuda.libs.cublas import sgemm  # works, but is private as well

    Source: the packages cupy-cuda12x 12.3.0, 13.6.0 and 14.2.0; issues 5761 and 6248 of cupy/cupy.
    """
    seen = set()
    for name in scripts_of(snapshot).names:
        bare = name.name.replace("import ", "")
        for old, since, instead in MOVED:
            here = (name.path, old, name.places[0][0])
            if (bare == old or bare.startswith(old + ".")) and here not in seen and not for_some_versions(name):
                seen.add(here)
                yield at(
                    name,
                    f"{old} is not in CuPy {since} and later",
                    f"Write {instead} instead.",
                    Evidence("name", bare),
                )
        for old, since, instead in MOVED_MODULES:
            if name.name == f"import {old}" and not for_some_versions(name):
                yield at(name, f"the module {old} is not in CuPy {since} and later", f"Write {instead} instead.")
