"""CD374: log ends in start up."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import NcclCommunicator, NcclLog
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import counted, events
from chainerdoctor.rules.nccl_logged import comm_name, listed_ranks
from chainerdoctor.snapshot import Snapshot


@rule("CD374", Severity.INFO, needs=(NcclLog,), since="0.1")
def log_ends_in_start_up(snapshot: Snapshot) -> Iterator[Finding]:
    """The log ends while communicators are still being set up.

    Why it hurts: nothing if the file was cut; if it is whole, the run hangs in its start-up.

    How to mend it: look whether the ranks still run; if they do, py-spy dump --pid shows where, and the last
    line of each rank tells what it waits for.
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
        if communicator.unfinished and not ended and not communicator.log_goes_on:
            yield Finding(
                listed_ranks(communicator.unfinished, communicator),
                f"the log ends before {counted(len(communicator.unfinished), 'rank')} finished the initialisation of "
                f"{comm_name(communicator)}",
                "If the file is whole, look at the last line of these ranks and run py-spy dump on them.",
                (
                    Evidence(
                        "finished",
                        f"{counted(len(communicator.finished), 'rank')}",
                        f"{counted(communicator.nranks, 'rank')}",
                    ),
                ),
                Location(communicator.path, communicator.line),
            )
