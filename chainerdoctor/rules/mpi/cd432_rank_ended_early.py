"""CD432: rank ended early."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.stalled import NEEDS, stalled
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.stalls import RETURNED

_REMEDY = "Give every rank the same number of iterations: keep force_equal_length=True in scatter_dataset, or stop by iterations."


@rule("CD432", Severity.ERROR, needs=NEEDS, since="0.1")
def rank_ended_early(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank's program ended as it should, while others still wait for it.

    Why it hurts: ranks that do not do the same number of iterations leave those with more of them in a
    collective that nobody completes.

    How to mend it: give every rank the same number of batches: scatter_dataset with force_equal_length (the
    default), or a trigger by iterations.
    """
    yield from stalled(snapshot, RETURNED, _REMEDY)
