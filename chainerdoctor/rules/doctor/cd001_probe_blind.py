"""CD001: probe blind."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.consensus import places
from chainerdoctor.facts import CRASHED, DENIED, ERROR, SILENT, TIMEOUT, Missing
from chainerdoctor.facts.mpi import RankOutcome
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot

_WORDS = {TIMEOUT: "it did not answer in time", CRASHED: "it crashed", ERROR: "it failed"}


@rule("CD001", Severity.WARNING, needs=(RankOutcome,), since="0.1")
def probe_blind(snapshot: Snapshot) -> Iterator[Finding]:
    """A probe could not see what it is there to see, through a fault: it crashed, hung, was refused or raised.

    Why it hurts: rules that need it were skipped, and a skipped rule looks like health. A driver call that hangs or
    crashes here does so in training, too.

    How to mend it: the evidence holds the true error; run the same call by hand on that node (nvidia-smi, ibstat,
    python -c "import chainer").
    """
    by_fault: Dict[Tuple[str, str, str], List[Sighting[Missing]]] = {}
    lost = any(seen.fact.state in ("silent", "partial", "died") for seen in snapshot.all(RankOutcome))
    for seen in snapshot.missing:
        # MPI_Init waits for all ranks: where one is lost (CD002) the others are its victims.
        victim = lost and seen.fact.probe == "mpi_world" and seen.fact.reason == TIMEOUT
        if seen.fact.blind and seen.fact.reason not in (DENIED, SILENT) and not victim:
            by_fault.setdefault((seen.fact.probe, seen.fact.reason, seen.fact.detail), []).append(seen)
    for (probe, reason, detail), sightings in sorted(by_fault.items()):
        kinds = sorted({kind for seen in sightings for kind in seen.fact.kinds})
        yield Finding(
            where=places(sightings),
            message=f"the probe {probe} was blind: {_WORDS.get(reason, reason)}",
            remedy="Run what it does by hand on that node to see the fault; then check again.",
            evidence=(Evidence(probe, detail, f"facts about {', '.join(kinds)}"),),
        )
