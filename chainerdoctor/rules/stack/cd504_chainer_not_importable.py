"""CD504: chainer not importable."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.stack import ImportOutcome
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import install_command
from chainerdoctor.snapshot import Snapshot

#: Words of errors that a rule of their own explains.
_EXPLAINED = (
    "distutils.msvccompiler",  # CD503
    "np.sctypes",  # CD502
    "Not a valid numpy version string",  # CD506
    "No module named 'cupy.",  # CD515
    "No module named 'numpy.distutils'",  # CD512
    "No module named 'distutils'",  # CD512
    "No module named 'pkg_resources'",  # CD512
)


@rule("CD504", Severity.ERROR, needs=(ImportOutcome,), since="0.1")
def chainer_not_importable(snapshot: Snapshot) -> Iterator[Finding]:
    """Chainer is installed and does not import.

    Why it hurts: nothing can train. The error in the evidence is the true one, of the deepest cause.

    How to mend it: the known causes have rules of their own (CD502, CD503, CD506, CD512, CD515); otherwise install
    the working set that the remedy names into a fresh environment.
    """
    failed = [
        s
        for s in snapshot.all(ImportOutcome)
        if s.fact.module == "chainer"
        and not s.fact.ok
        and not s.fact.error.startswith("ModuleNotFoundError: No module named 'chainer'")
    ]
    unexplained = [s for s in failed if not any(words in s.fact.error for words in _EXPLAINED)]
    for error, sightings in groups(unexplained, lambda fact: fact.error).items():
        yield Finding(
            where=places(sightings),
            message="import chainer fails",
            remedy=install_command(snapshot, sightings[0].node),
            evidence=(Evidence("import chainer", error, "works"),),
        )
