"""CD585: numpy too new."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import PythonLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD585", Severity.ERROR, needs=(PythonLog,), since="0.1")
def numpy_or_setuptools_too_new(snapshot: Snapshot) -> Iterator[Finding]:
    """Chainer met a NumPy (or setuptools) that is too new for it.

    Why it hurts: Chainer 7.8.1 uses names that NumPy 1.24 and 2.0 removed and numpy.distutils, which newer
    setuptools break.

    How to mend it: pip install 'numpy==1.23.5' 'setuptools<74'.

    Source: chainer#8632, #8616
    """
    return told(
        snapshot,
        ("python.numpy", "python.setuptools"),
        "NumPy or setuptools is too new for Chainer",
        "Run pip install 'numpy==1.23.5' 'setuptools<74'.",
    )
