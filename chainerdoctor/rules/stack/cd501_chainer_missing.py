"""CD501: chainer missing."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import Distribution, ImportOutcome, Interpreter, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import install_command
from chainerdoctor.snapshot import Snapshot


@rule("CD501", Severity.ERROR, needs=(PackageSurvey,), since="0.1")
def chainer_missing(snapshot: Snapshot) -> Iterator[Finding]:
    """Chainer is not installed in the interpreter that runs the ranks.

    Why it hurts: nothing can train. A plain pip install chainer fails on Python 3.9 and newer with "No module named
    'pkg_resources'", since Chainer's setup.py needs setuptools below 82 in the build environment, and at run time
    numpy.distutils needs setuptools below 74.

    How to mend it: put setuptools<74 into a file and name it in both PIP_CONSTRAINT and PIP_BUILD_CONSTRAINT while
    installing chainer==7.8.1 and numpy==1.23.5. The remedy holds the whole command.

    Source: setuptools 82.0.0 dropped pkg_resources; tried on Python 3.8 to 3.11 with old and new pip.
    """
    have = {(s.node, s.rank) for s in snapshot.all(Distribution) if s.fact.name == "chainer"}
    have |= {(s.node, s.rank) for s in snapshot.all(ImportOutcome) if s.fact.module == "chainer" and s.fact.ok}
    lacking = [s for s in snapshot.all(PackageSurvey) if (s.node, s.rank) not in have]
    if lacking:
        first = lacking[0]
        python = next((s.fact for s in snapshot.all(Interpreter) if (s.node, s.rank) == (first.node, first.rank)), None)
        evidence = [Evidence("chainer", "not among the installed packages", "7.8.1")]
        if python is not None:
            evidence.append(Evidence("interpreter", f"{python.executable} (Python {python.version})"))
        yield Finding(
            where=places(lacking),
            message="Chainer is not installed",
            remedy=install_command(snapshot, first.node),
            evidence=tuple(evidence),
        )
