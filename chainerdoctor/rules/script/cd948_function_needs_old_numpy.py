"""CD948: function needs old NumPy."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, for_some_versions, once_a_file, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD948", Severity.INFO, needs=(ScriptFile,), since="0.1")
def function_needs_old_numpy(snapshot: Snapshot) -> Iterator[Finding]:
    """A script calls F.resize_images, which fails with NumPy 1.24 and later.

    Why it hurts: Chainer 7.8.1 writes numpy.float inside it, so the import works and the call raises
    AttributeError when it is first reached.

    How to mend it: `pip install numpy==1.23.5`, or run the script by `chainerdoctor run --compat`.

    Source: chainer/functions/array/resize_images.py of Chainer 7.8.1; reproduced with NumPy 1.24.4.
    """
    scripts = scripts_of(snapshot)
    for call in once_a_file(scripts.of("chainer", "resize_images")):
        if not for_some_versions(call):
            yield at(
                call,
                "resize_images needs NumPy below 1.24",
                "Install numpy==1.23.5, or use chainerdoctor run --compat.",
                Evidence("uses inside", "numpy.float", "float"),
            )
