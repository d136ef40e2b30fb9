"""CD306: nccl version differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import NcclVersion
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD306", Severity.ERROR, needs=(NcclVersion,), since="0.1")
def nccl_version_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank has loaded another version of NCCL than the others.

    Why it hurts: ranks with different NCCL versions do not speak the same protocol. The first collective fails,
    hangs every rank, or in rare cases corrupts data.

    How to mend it: use one environment on all nodes and look for a second libnccl.so.2 on LD_LIBRARY_PATH of the
    odd node.

    Source: NVIDIA/nccl issue 286.
    """
    yield from differences(
        [seen for seen in snapshot.all(NcclVersion) if seen.fact.source == "loaded"],
        lambda fact: fact.version,
        "the loaded NCCL version",
        "Install the same NCCL on all nodes: pip install nvidia-nccl-cu12==VERSION in the shared environment, and remove others from LD_LIBRARY_PATH.",
    )
