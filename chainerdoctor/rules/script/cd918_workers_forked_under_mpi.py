"""CD918: workers forked under mpi."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, once_a_file, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD918", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def workers_forked_under_mpi(snapshot: Snapshot) -> Iterator[Finding]:
    """A MultiprocessIterator forks its workers in an MPI program.

    Why it hurts: fork copies a process that holds MPI and GPU state; many MPIs warn, and workers crash or
    hang, with InfiniBand most of all.

    How to mend it: call multiprocessing.set_start_method('forkserver') and start one empty process before
    create_communicator, or use MultithreadIterator.

    Source: issues 204 and 246 of chainer/chainermn; its documentation under "Tips and FAQs".
    """
    scripts = scripts_of(snapshot)
    for call in once_a_file(scripts.of("chainer", "MultiprocessIterator")):
        if scripts.communicators(call.path) and not scripts.mentions(call.path, "set_start_method", "get_context"):
            yield at(
                call,
                "the workers of this iterator are forked from a process that uses MPI",
                "Write multiprocessing.set_start_method('forkserver') and start one Process() before create_communicator.",
            )
