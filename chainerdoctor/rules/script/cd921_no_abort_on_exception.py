"""CD921: no abort on exception."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD921", Severity.INFO, needs=(ScriptFile,), since="0.1")
def no_abort_on_exception(snapshot: Snapshot) -> Iterator[Finding]:
    """If one rank raises, nothing stops the others.

    Why it hurts: the other ranks wait in the next collective for ever, and the job burns its whole time
    limit.

    How to mend it: start it with `mpiexec … python -m mpi4py train.py`, or set
    CHAINERMN_FORCE_ABORT_ON_EXCEPTION=1 (without S), or call chainermn.global_except_hook.add_hook().

    Source: issue 236 of chainer/chainermn; chainermn/global_except_hook.py of Chainer 7.8.1.
    """
    scripts = scripts_of(snapshot)
    for comm in scripts.distributed():
        hooked = any("global_except_hook" in name.name for name in scripts.names_inside(comm.path))
        if not hooked and not scripts.sets(comm.path, "CHAINERMN_FORCE_ABORT_ON_EXCEPTION"):
            yield at(
                comm,
                "an exception on one rank leaves the others waiting",
                "Start it with mpiexec … python -m mpi4py, or call chainermn.global_except_hook.add_hook().",
            )
