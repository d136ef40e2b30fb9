"""CD920: every rank on one gpu."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptCall, ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, on_some_ranks, scripts_of
from chainerdoctor.snapshot import Snapshot


def on_cpu(call: ScriptCall) -> bool:
    """Whether the communicator is the one for CPUs."""
    name = argument(call, 0, "communicator_name")
    return name is not None and name.literal == "'naive'"


@rule("CD920", Severity.WARNING, needs=(ScriptFile,), since="0.1")
def every_rank_on_one_gpu(snapshot: Snapshot) -> Iterator[Finding]:
    """A ChainerMN script uses a GPU by a fixed number.

    Why it hurts: all ranks of a node share that GPU and the others idle; NCCL refuses with "Duplicate GPU
    detected".

    How to mend it: take the number from the communicator:
    `chainer.backends.cuda.get_device_from_id(comm.intra_rank).use()`.

    Source: chainermn examples; horovod issue 3929 for the message of NCCL.
    """
    scripts = scripts_of(snapshot)
    for call in scripts.of("chainer", "get_device_from_id"):
        number = argument(call, 0, "device_id")
        if number is None or number.literal is None or not number.literal.isdigit() or on_some_ranks(call):
            continue
        comms = [c for c in scripts.of("chainermn", "create_communicator").of_file(call.path) if not on_cpu(c)]
        visible = scripts.sets(call.path, "CUDA_VISIBLE_DEVICES")
        if comms and not visible and not scripts.mentions_intra_rank(call.path):
            yield at(
                call,
                f"every rank of a node uses GPU {number.literal}",
                "Write chainer.backends.cuda.get_device_from_id(comm.intra_rank).use().",
                Evidence("communicator", f"line {comms[0].line}"),
            )
