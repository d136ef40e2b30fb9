"""CD910: communicator name removed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, scripts_of
from chainerdoctor.snapshot import Snapshot

#: Names that ``create_communicator`` of Chainer 7.8.1 accepts, as ``repr`` gives them.
KNOWN = frozenset({"'naive'", "'flat'", "'non_cuda_aware'", "'pure_nccl'", "'dummy'", "'None'"})


@rule("CD910", Severity.ERROR, needs=(ScriptFile,), since="0.1")
def communicator_name_removed(snapshot: Snapshot) -> Iterator[Finding]:
    """A communicator is created by a name that Chainer 7 does not have.

    Why it hurts: create_communicator raises "Unrecognized communicator" on every rank before training starts.

    How to mend it: use 'pure_nccl' on GPUs, 'flat' or 'naive' otherwise.

    Example:
        comm = chainermn.create_communicator('hierarchical')  # wrong: removed in version 7
        comm = chainermn.create_communicator('pure_nccl')     # right

    Source: chainermn/communicators/__init__.py of Chainer 7.8.1.
    """
    for call in scripts_of(snapshot).of("chainermn", "create_communicator"):
        given = argument(call, 0, "communicator_name")
        if given is None or not given.certain and given.default is None:
            continue
        quoted = given.literal or given.default
        if quoted is None or quoted in KNOWN or not quoted.startswith("'"):
            continue
        how = "" if given.literal else "by default "
        yield at(
            call,
            f"{how}the communicator {quoted} is asked for, which Chainer 7 does not have",
            "Write create_communicator('pure_nccl') for GPUs, 'naive' for CPUs.",
            Evidence("name", quoted, "one of " + ", ".join(sorted(KNOWN))),
        )
