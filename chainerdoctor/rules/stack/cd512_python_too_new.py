"""CD512: python too new."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.stack import ImportOutcome, Interpreter
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stack.working_set import import_error, version_tuple
from chainerdoctor.snapshot import Snapshot


@rule("CD512", Severity.ERROR, needs=(Interpreter,), since="0.1")
def python_too_new(snapshot: Snapshot) -> Iterator[Finding]:
    """Python 3.12 or newer runs the ranks, and Chainer 7.8.1 stops at 3.11.

    Why it hurts: distutils left Python 3.12, which Chainer's environment check needs through numpy.distutils, and
    NumPy 1.23 has no wheel for it.

    How to mend it: use Python 3.8 to 3.11, or run the script with chainerdoctor run --compat train.py.

    Source: tried with 3.8 to 3.13.
    """
    new = [s for s in snapshot.all(Interpreter) if version_tuple(s.fact.version) >= (3, 12)]
    # Where the import works all the same (the compat layer), there is nothing to mend.
    works = {(s.node, s.rank) for s in snapshot.all(ImportOutcome) if s.fact.module == "chainer" and s.fact.ok}
    new = [s for s in new if (s.node, s.rank) not in works]
    for version, sightings in groups(new, lambda fact: fact.version).items():
        yield Finding(
            where=places(sightings),
            message=f"Chainer 7.8.1 does not import on Python {version}",
            remedy="Make the environment with Python 3.11 (python3.11 -m venv .venv), or use chainerdoctor run --compat train.py.",
            evidence=(
                Evidence("interpreter", f"{sightings[0].fact.executable}, Python {version}", "3.8 to 3.11"),
                *import_error(snapshot, sightings[0], "chainer"),
            ),
        )
