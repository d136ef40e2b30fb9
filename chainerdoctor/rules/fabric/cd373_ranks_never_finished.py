"""CD373: ranks never finished."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import counted, events
from chainerdoctor.rules.nccl_logged import comm_name, listed_ranks
from chainerdoctor.snapshot import Snapshot


@rule("CD373", Severity.ERROR, needs=(NcclLog,), since="0.1")
def ranks_never_finished(snapshot: Snapshot) -> Iterator[Finding]:
    """Some ranks of a communicator never finished their initialisation while others did, or the run ended in it.

    Why it hurts: the others wait for them in the first collective.

    How to mend it: look at the last lines of the ranks named here: they are dead, stuck in a connection, or
    were never started.

    Source: NVIDIA/nccl src/init.cc (Init START, Init COMPLETE; 2.17 and later)
    """
    ended = bool(
        events(
            snapshot,
            "mpi.failed",
            "mpi.abort",
            "mpi.signal",
            "mpi.killed",
            "mpi.segv",
            "mpi.time_limit",
            "mpi.cancelled",
            "python.traceback",
        )
    )
    for sighting in snapshot.all(NcclCommunicator):
        communicator = sighting.fact
        if not communicator.identified or not communicator.nranks:
            continue
        missing = [r for r in range(min(communicator.nranks, 100_000)) if r not in set(communicator.finished)]
        # A log that is cut in the middle of start-up looks the same; only what came after tells them apart.
        if not missing or not (ended or communicator.log_goes_on):
            continue
        if not communicator.finished and not communicator.unfinished:
            continue
        seen_at_all = set(communicator.unfinished) | {int(r) for r in communicator.where}
        # One file a rank is usual: ranks that this file never names are not missing, they are elsewhere.
        missing = [r for r in missing if r in seen_at_all]
        if missing:
            yield Finding(
                listed_ranks(missing, communicator),
                f"{len(missing)} of {communicator.nranks} ranks never finished the initialisation of "
                f"{comm_name(communicator)}",
                f"Look at the last lines of {listed_ranks(missing[:1], communicator)}: it is dead or waits for a "
                f"connection.",
                (
                    Evidence(
                        "finished",
                        f"{counted(len(communicator.finished), 'rank')}",
                        f"{counted(communicator.nranks, 'rank')}",
                    ),
                ),
                Location(communicator.path, communicator.line),
            )
