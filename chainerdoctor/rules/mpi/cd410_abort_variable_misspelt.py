"""CD410: abort variable misspelt."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD410", Severity.WARNING, needs=(EnvironmentSurvey,), since="0.1")
def abort_variable_misspelt(snapshot: Snapshot) -> Iterator[Finding]:
    """CHAINERMN_FORCE_ABORT_ON_EXCEPTIONS is set, and nothing reads it.

    Why it hurts: the documentation names this variable, and Chainer 7.8.1 reads CHAINERMN_FORCE_ABORT_ON_EXCEPTION.
    So one rank that raises still leaves the others hanging.

    How to mend it: set CHAINERMN_FORCE_ABORT_ON_EXCEPTION=1, or start the script with python -m mpi4py.

    Source: chainermn/global_except_hook.py of Chainer 7.8.1; chainer/chainermn issue 236.
    """
    wrong = [s for s in snapshot.all(EnvironmentVariable) if s.fact.name == "CHAINERMN_FORCE_ABORT_ON_EXCEPTIONS"]
    right = {
        (s.node, s.rank)
        for s in snapshot.all(EnvironmentVariable)
        if s.fact.name == "CHAINERMN_FORCE_ABORT_ON_EXCEPTION"
    }
    useless = [s for s in wrong if (s.node, s.rank) not in right]
    if useless:
        yield Finding(
            where=places(useless),
            message="CHAINERMN_FORCE_ABORT_ON_EXCEPTIONS does nothing",
            remedy="Set CHAINERMN_FORCE_ABORT_ON_EXCEPTION=1 (without the S), or run python -m mpi4py train.py.",
            evidence=(Evidence("set", "…_ON_EXCEPTIONS", "…_ON_EXCEPTION"),),
        )
