"""CD580: uncaught exception."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LogEvent, PythonLog
from chainerdoctor.findings import Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import events, quotes, shortened, speakers
from chainerdoctor.snapshot import Snapshot


def snapshot_explains(snapshot: Snapshot) -> bool:
    """Whether a known exception was recognised, which has a rule of its own."""
    return any(
        s.fact.event.startswith("python.") and s.fact.event not in ("python.traceback", "python.exception")
        for s in snapshot.all(LogEvent)
    )


@rule("CD580", Severity.WARNING, needs=(PythonLog,), since="0.1")
def uncaught_exception(snapshot: Snapshot) -> Iterator[Finding]:
    """Python printed a traceback.

    Why it hurts: a rank that raises leaves the others waiting in the next collective, unless the whole job is
    stopped.

    How to mend it: mend the exception; start with python -m mpi4py train.py, or add
    chainermn.global_except_hook, so that one failing rank stops all. (The variable that ChainerMN reads is
    CHAINERMN_FORCE_ABORT_ON_EXCEPTION, without the plural of its documentation.)

    Source: chainermn#236; chainermn/global_except_hook.py
    """
    found = events(snapshot, "python.exception", "python.chainer_loop")
    tracebacks = events(snapshot, "python.traceback")
    if tracebacks and not found and snapshot_explains(snapshot):
        return  # a rule for this very exception has said it better
    if tracebacks:
        kinds = shortened(dict.fromkeys(e.detail["kind"] for e in found if "kind" in e.detail))
        yield Finding(
            speakers([*found, *tracebacks]),
            f"the program raised {kinds}" if kinds else "the program raised an exception",
            "Mend the exception in the quoted line; start ranks with python -m mpi4py so that one failure stops all.",
            quotes(found or tracebacks, snapshot),
            Location((found or tracebacks)[0].path, (found or tracebacks)[0].line),
        )
