"""CD939: cudnn only call."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, for_some_versions, scripts_of
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.cupy_paths import CUDNN


@rule("CD939", Severity.INFO, needs=(ScriptFile,), since="0.1")
def cudnn_only_call(snapshot: Snapshot) -> Iterator[Finding]:
    """A script calls cuDNN through CuPy, which CuPy 14 no longer offers.

    Why it hurts: with CuPy 14 the import fails; Chainer itself then computes without cuDNN.

    How to mend it: stay at CuPy 13 (`pip install "cupy-cuda12x<14"`), or call the function of
    chainer.functions instead.

    Source: the packages cupy-cuda12x 13.6.0 (has cupy/cudnn.py) and 14.2.0 (has not).
    """
    for name in scripts_of(snapshot).names:
        bare = name.name.replace("import ", "")
        if bare in CUDNN and not for_some_versions(name):
            yield at(
                name,
                f"{bare} needs cuDNN in CuPy, which CuPy 14 does not have",
                "Install CuPy below 14, or use the function of chainer.functions.",
            )
