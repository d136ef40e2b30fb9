"""CD380: other nccl warning."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import told
from chainerdoctor.snapshot import Snapshot


@rule("CD380", Severity.WARNING, needs=(NcclLog,), since="0.1")
def other_nccl_warning(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL printed a warning that this program has no explanation for.

    Why it hurts: NCCL warns only when something failed; most often an error of the run follows.

    How to mend it: read the quoted line; the part before NCCL WARN names NCCL's source file, and a search for
    the text in github.com/NVIDIA/nccl/issues helps.
    """
    return told(
        snapshot,
        ("nccl.warning", "nccl.no_transport", "nccl.mixed_devices", "nccl.no_interface"),
        "NCCL warned of something else",
        "Search the text of the quoted line at github.com/NVIDIA/nccl/issues and look at the lines before it.",
    )
