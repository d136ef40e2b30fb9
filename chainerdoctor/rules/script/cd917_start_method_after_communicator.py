"""CD917: start method after communicator."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD917", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def start_method_after_communicator(snapshot: Snapshot) -> Iterator[Finding]:
    """The start method of processes is chosen after the communicator exists.

    Why it hurts: the fork server is then forked from a process that holds MPI and GPU state: workers crash or
    hang, with InfiniBand most of all.

    How to mend it: call multiprocessing.set_start_method('forkserver') and start one empty process before
    create_communicator.

    Example:
        multiprocessing.set_start_method('forkserver')   # right: before the communicator,
        process = multiprocessing.Process()              # with one process started,
        process.start()                                  # so that the server exists
        process.join()
        comm = chainermn.create_communicator('pure_nccl')

    Source: issues 204 and 246 of chainer/chainermn.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.of("multiprocessing", "set_start_method"):
        for comm in scripts.of("chainermn", "create_communicator"):
            same = comm.path == call.path and comm.scope == call.scope
            if (
                same
                and comm.number < call.number
                and scripts.inside(scripts.of("chainer", "MultiprocessIterator"), call.path)
            ):
                yield at(
                    call,
                    "the start method is set after the communicator was created",
                    "Move it, and one started and joined Process(), before create_communicator.",
                    Evidence("communicator", f"line {comm.line}"),
                )
                break
