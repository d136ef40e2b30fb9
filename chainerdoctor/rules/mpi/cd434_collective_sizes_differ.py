"""CD434: collective sizes differ."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stalled import NEEDS, stalled
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import SIZES

_REMEDY = (
    "Give every rank the same shapes; create the multi-node optimizer with zero_fill=True if gradients are missing."
)


@rule("CD434", Severity.ERROR, needs=NEEDS, since="0.1")
def collective_sizes_differ(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks called the same collective with different amounts of data.

    Why it hurts: MPI aborts with a truncated message, waits for ever, or mixes up data silently; which one
    depends on the sizes.

    How to mend it: give arrays the same shape on every rank. Where a parameter has no gradient on some rank,
    create the multi-node optimizer with zero_fill=True.
    """
    yield from stalled(snapshot, SIZES, _REMEDY)
