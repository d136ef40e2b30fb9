"""CD911: gradient type refused."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.script import ScriptFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.scripted import argument, at, scripts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD911", Severity.ERROR, needs=(ScriptFile,), since="0.1")
def gradient_type_refused(snapshot: Snapshot) -> Iterator[Finding]:
    """A gradient type is given to a communicator that does not take one.

    Why it hurts: only pure_nccl exchanges gradients in another type; create_communicator raises ValueError
    for all others.

    How to mend it: use 'pure_nccl', or drop allreduce_grad_dtype.

    Example:
        chainermn.create_communicator('flat', allreduce_grad_dtype=np.float16)       # wrong: ValueError
        chainermn.create_communicator('pure_nccl', allreduce_grad_dtype=np.float16)  # right

    Source: chainermn/communicators/__init__.py of Chainer 7.8.1.
    """
    for call in scripts_of(snapshot).of("chainermn", "create_communicator"):
        kind = call.keywords.get("allreduce_grad_dtype")
        name = argument(call, 0, "communicator_name")
        if kind is None or not kind.certain or not kind.names or "None" in kind.names or name is None:
            continue
        if name.literal in ("'naive'", "'flat'", "'non_cuda_aware'"):
            yield at(
                call,
                f"allreduce_grad_dtype is given to the communicator {name.literal}, which refuses it",
                "Write create_communicator('pure_nccl', allreduce_grad_dtype=…), or leave the type out.",
                Evidence("type", kind.names[0]),
            )
