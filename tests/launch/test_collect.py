"""Putting shards together: nodes of one name, clocks, obituaries (in the words of each launcher), late and odd ranks."""

import time

from chainerdoctor.facts.host import ClockOffset
from chainerdoctor.facts.mpi import LauncherOutcome, RankOutcome
from chainerdoctor.launch.collect import Gathering, Obituary, obituary_in
from chainerdoctor.launch.frames import frames

OPEN_MPI_4 = "mpirun noticed that process rank 5 with PID 4242 on node node2 exited on signal 9 (Killed).\n"
OPEN_MPI_5 = """prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-node1-20982@1,5]
   Exit code:    16
"""


def hello(rank: int, node: str, boot: str, t: float = 0.0, final: bool = True) -> bytes:
    told = {"node": node, "boot": boot, "size": 2}
    return b"".join(frames(rank, 0, {"hello": told, "final": final, "t": t}))


def outcomes(gathering: Gathering, obituary=None):
    end = LauncherOutcome("x", 0, 2, 1.0, "")
    return {s.fact.rank: s for s in gathering.snapshot(end, "x", obituary).all(RankOutcome)}


def test_obituaries_of_each_launcher() -> None:
    assert obituary_in(OPEN_MPI_4) == Obituary(5, "mpiexec says: exited on signal 9 (Killed)")
    assert obituary_in(OPEN_MPI_5) == Obituary(5, "mpiexec says: exit code: 16")
    assert obituary_in("all is well") is None


def test_launchers_obituary_names_the_culprit_and_the_victims() -> None:
    gathering = Gathering(7, time.time())
    gathering.feed(hello(0, "node1", "a", final=False), 0.0)
    seen = outcomes(gathering, obituary_in(OPEN_MPI_4))
    assert {s.fact.state for rank, s in seen.items() if rank != 5} == {"cut"}
    assert seen[5].fact.state == "died"


def test_witness_counts_as_the_ranks_last_word() -> None:
    gathering = Gathering(1, time.time())
    gathering.feed(hello(0, "node1", "a", final=False), 0.0)
    assert gathering.complete == 0
    gathering.feed(b"".join(frames(0, 999_999, {"died": "killed", "t": 0})), 0.0)
    assert gathering.complete == 1
    assert outcomes(gathering)[0].fact.state == "died"


def test_complete_ranks_stay_complete_after_a_death() -> None:
    gathering = Gathering(2, time.time())
    gathering.feed(hello(0, "node1", "a"), 0.0)
    seen = outcomes(gathering, Obituary(1, "died"))
    assert {rank: s.fact.state for rank, s in seen.items()} == {0: "complete", 1: "died"}


def test_two_machines_of_one_name_are_told_apart() -> None:
    gathering = Gathering(2, time.time())
    gathering.feed(hello(0, "node1", "boot-a") + hello(1, "node1", "boot-b"), 0.0)
    assert sorted(s.node for s in outcomes(gathering).values()) == ["node1", "node1#2"]


def test_ranks_beyond_the_job_and_forged_contents_are_ignored() -> None:
    gathering = Gathering(2, time.time())
    gathering.feed(hello(7, "evil", "z") + b"".join(frames(0, 1, ["not", "a", "dict"])), 0.0)
    gathering.feed(b"".join(frames(0, 2, {"hello": 3, "sightings": [None, {"node": 1}], "t": "x"})), 0.0)
    assert outcomes(gathering)[0].fact.state == "damaged"
    assert gathering.complete == 0


def test_clock_offset_is_bounded_by_what_is_known() -> None:
    # The sender's clock is 100 s ahead: it stamps 1101 when ours, begun at 1000, shows 1001.5 on arrival.
    gathering = Gathering(1, 1000.0)
    gathering.feed(hello(0, "node1", "a", t=1101.0), 1001.5)
    (offset,) = gathering.snapshot(LauncherOutcome("x", 0, 1, 1.0, ""), "x").all(ClockOffset)
    assert offset.fact.low_s <= 100.0 <= offset.fact.high_s
    assert (offset.fact.low_s, offset.fact.high_s) == (99.5, 101.0)


def test_silent_rank_is_a_fact() -> None:
    gathering = Gathering(2, time.time())
    gathering.feed(hello(0, "node1", "a"), 0.0)
    seen = outcomes(gathering)
    assert (seen[1].fact.state, seen[1].node) == ("silent", "")


def test_nobody_heard_is_never_an_all_clear() -> None:
    """With the rule on silent ranks left out, the others could not judge; they did not pass."""
    from chainerdoctor.findings import Severity
    from chainerdoctor.judging import report_on
    from chainerdoctor.rules import all_rules, selected

    snapshot = Gathering(2, time.time()).snapshot(LauncherOutcome("x", 1, 2, 0.1, ""), "x")
    report = report_on(snapshot, selected(all_rules(), ("CD4",), ()), "x")
    assert report.exit_code(Severity.ERROR) == 3
    assert "CD401" in {verdict.code for verdict in report.could_not_judge()}
