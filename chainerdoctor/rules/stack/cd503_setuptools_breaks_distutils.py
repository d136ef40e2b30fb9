"""CD503: setuptools breaks distutils."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import Distribution, ImportOutcome
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD503", Severity.ERROR, needs=(ImportOutcome,), since="0.1")
def setuptools_breaks_distutils(snapshot: Snapshot) -> Iterator[Finding]:
    """Chainer does not import because setuptools is too new for NumPy's distutils.

    Why it hurts: Chainer's environment check imports numpy.distutils, and setuptools from 74 on lacks
    distutils.msvccompiler. Environments made by uv or by a new venv hit this by default.

    How to mend it: pip install "setuptools<74", or set SETUPTOOLS_USE_DISTUTILS=stdlib in the job's environment.

    Source: reproduced with setuptools 73.0.1 (works) and 74.1.3 (fails), Python 3.8 to 3.11.
    """
    failed = [
        s
        for s in snapshot.all(ImportOutcome)
        if s.fact.module == "chainer" and "No module named 'distutils.msvccompiler'" in s.fact.error
    ]
    if failed:
        versions = {s.fact.version for s in snapshot.all(Distribution) if s.fact.name == "setuptools"}
        yield Finding(
            where=places(failed),
            message="import chainer fails in numpy.distutils",
            remedy='Run pip install "setuptools<74" (or set SETUPTOOLS_USE_DISTUTILS=stdlib for the ranks).',
            evidence=(
                Evidence("import chainer", failed[0].fact.error, "works"),
                Evidence("setuptools", ", ".join(sorted(versions)) or "not installed", "below 74"),
            ),
        )
