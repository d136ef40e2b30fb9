"""CD007: instrument failed."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.run import CaptureState
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD007", Severity.WARNING, needs=(CaptureState,), since="0.1")
def instrument_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """A part of the doctor broke inside the program and was switched off; the program went on.

    Why it hurts: what that part would have seen is missing from the report.

    How to mend it: Chainer 7.8.1 is what the instruments are made for; with it, please report the error.
    """
    by_error: Dict[Tuple[str, str], List[int]] = {}
    for seen in snapshot.all(CaptureState):
        for failure in seen.fact.failed.items():
            by_error.setdefault(failure, []).append(seen.rank or 0)
    for (who, error), ranks in sorted(by_error.items()):
        yield Finding(
            where=rank_list(sorted(ranks)),
            message=f"{who} of chainerdoctor failed and was switched off",
            remedy="Use Chainer 7.8.1, or report this error with the versions that are in use.",
            evidence=(Evidence("error", error),),
        )
