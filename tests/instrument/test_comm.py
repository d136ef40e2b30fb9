"""Who made whom wait: delays of known length on real ranks, and meetings worked out by hand."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Tuple

import pytest

from chainerdoctor.captures.meetings import Clock, Meeting, TimedCall, meetings, members
from chainerdoctor.facts.comm import CommunicationTime, Lateness, RankClock, Scaling
from chainerdoctor.instrument.training import PHASES
from chainerdoctor.instrumented import report_on_run, trace_of_run
from chainerdoctor.predictions import predictions
from chainerdoctor.snapshot import Snapshot

needs_chainer = pytest.mark.skipif(sys.version_info >= (3, 12), reason="Chainer runs on Python 3.8 to 3.11 here")
SCRIPTS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "scripts"
MPIEXEC = Path(sys.executable).parent / "mpiexec"


def call(rank: int, begun_s: float, ended_s: float, **more: object) -> TimedCall:
    spent = dict.fromkeys(PHASES, 0.0)
    spent.update(more.pop("spent", {}))  # type: ignore[call-overload]
    fields = {
        "operation": "multi_node_mean_grad",
        "communicator": "0-2/1",
        "place": "train.py:1",
        "dtype": "float32",
        "index": 5,
        "iteration": 5,
        "peer": -1,
        "size_bytes": 1000,
        "phase": 0,
        "on_stream": False,
        **more,
    }
    return TimedCall(rank, begun_s=begun_s, ended_s=ended_s, phases_s=tuple(spent.values()), **fields)  # type: ignore[arg-type]


def test_one_late_rank_has_all_the_blame() -> None:
    row = (call(0, 1.0, 5.0), call(1, 1.0, 5.0), call(2, 4.0, 5.0, spent={"data": 3.0, "forward": 0.5}))
    meeting = Meeting(row)
    assert [meeting.waiting_s(each) for each in row] == [3.0, 3.0, 0.0]
    assert [meeting.transfer_s(each) for each in row] == [1.0, 1.0, 1.0]
    blamed = [(late.rank, late_s, cost_s) for late, late_s, cost_s, _ in meeting.blame()]
    assert blamed == [(2, 3.0, 6.0)]
    ((_, _, _, phases),) = meeting.blame()
    assert phases == pytest.approx({"data": 3.0 * 3.0 / 3.5, "forward": 3.0 * 0.5 / 3.5})


def test_two_late_ranks_share_the_time_in_which_both_are_missing() -> None:
    row = (call(0, 0.0, 4.0), call(1, 2.0, 4.0), call(2, 3.0, 4.0))
    blamed = {late.rank: (late_s, cost_s) for late, late_s, cost_s, _ in Meeting(row).blame()}
    assert blamed == {1: (1.0, 1.0), 2: (1.0 + 1.0, 1.0 + 2.0)}


def test_who_left_before_the_last_came_did_not_wait() -> None:
    """A broadcast's root."""
    row = (call(0, 0.0, 0.5), call(1, 0.0, 9.0), call(2, 8.0, 9.0))
    meeting = Meeting(row)
    assert [meeting.waiting_s(each) for each in row] == [0.5, 8.0, 0.0]
    assert [(late.rank, late_s, cost_s) for late, late_s, cost_s, _ in meeting.blame()] == [(2, 8.0, 8.0)]


def test_messages_meet_by_their_pair_and_collectives_by_their_place_in_the_row() -> None:
    rows = {
        0: [call(0, 0, 1, operation="send_obj", peer=2, index=1), call(0, 2, 3)],
        1: [call(1, 2, 3)],
        2: [call(2, 0, 1, operation="recv_obj", peer=0, index=1), call(2, 2, 3), call(2, 4, 5, index=6)],
    }
    assert [[each.rank for each in meeting.calls] for meeting in meetings(rows)] == [[0, 2], [0, 1, 2]]
    assert members("0-2,5/2") == [0, 1, 2, 5]


def test_a_clock_with_drift() -> None:
    """One second ahead at 10 s, and 3 s at 30 s: 2 s at 20 s."""
    clock = Clock(False, ((10e9, 1e9, 0.0), (30e9, 3e9, 0.0)))
    assert clock.seconds(20e9) == pytest.approx(18.0)
    assert Clock(True, ((10e9, 1e9, 0.0),)).seconds(20e9) == 20.0


def test_predictions_by_hand() -> None:
    """100 ms: 60 computing, 10 waiting, 30 sending."""
    scaling = Scaling(4, 10, 0.1, 0.06, 0.01, 0.03, 0.0, 1000, "float32", None, False)
    assert scaling.efficiency == pytest.approx(0.6)
    found = predictions(scaling)
    assert found["float16 communication"] == pytest.approx((0.085, 0.06 / 0.085))
    assert found["double buffering"] == pytest.approx((0.07, 0.06 / 0.07))
    assert found["batches of twice the size"] == pytest.approx((0.16, 0.12 / 0.16))


def profiled(tmp_path: Path, *arguments: str, shift_clocks: bool = False) -> Tuple[Snapshot, str]:
    """A run on four ranks; with ``shift_clocks`` each in a time namespace of its own, 1,000 s apart."""
    folder = tmp_path / "run"
    profile = [sys.executable, "-m", "chainerdoctor", "profile-comm", "--out", str(folder)]
    script = [str(SCRIPTS / "delayed_rank.py"), *arguments]
    if shift_clocks:
        code = 'exec unshare -T --monotonic $((PMI_RANK * 1000 + 7)) -- "$@"'
        command = [str(MPIEXEC), "-n", "4", "sh", "-c", code, "sh", *profile, *script]
    else:
        command = [*profile, "-n", "4", *script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return report_on_run(folder)[0], done.stdout


def injected_s(out: str) -> float:
    return sum(map(float, re.findall(r"was delayed for ([\d.]+) s", out)))


def assert_blamed(seen: Snapshot, rank: int, phase: str, injected: float) -> None:
    late = {each.rank: each.fact for each in seen.all(Lateness)}
    assert late[rank].phases_s[phase] == pytest.approx(injected, rel=0.1)
    assert late[rank].cost_s == pytest.approx(3 * injected, rel=0.15)
    assert max(each.late_s for other, each in late.items() if other != rank) < 0.1 * injected


@needs_chainer
@pytest.mark.parametrize(("phase", "rank"), [("data", 2), ("forward", 1), ("extension", 0)])
def test_a_delay_is_blamed_on_its_rank_and_phase(tmp_path: Path, phase: str, rank: int) -> None:
    seen, out = profiled(tmp_path, "--phase", phase, "--rank", str(rank))
    injected = injected_s(out)
    assert injected > 39 * 0.02
    assert_blamed(seen, rank, phase, injected)
    _, report = report_on_run(tmp_path / "run")
    (finding,) = next(verdict.findings for verdict in report.found() if verdict.code == "CD650")
    assert finding.where.endswith(f"rank {rank}")
    assert f"of it in {phase}" in finding.message
    (exchange,) = [each.fact for each in seen.all(CommunicationTime) if each.rank == rank]
    # Nine parameters of float32: 8 times 4 weights and 4 biases.
    assert (exchange.calls, exchange.size_bytes, exchange.unmatched) == (39, 144, 0)
    if phase == "data":
        assert_trace(json.loads(trace_of_run(tmp_path / "run"))["traceEvents"], seen, rank)


def assert_trace(events: list, seen: Snapshot, rank: int) -> None:
    """The trace has the report's numbers, and an arrow from the late rank to each that waited."""
    exchanges = [
        each
        for each in events
        if each["ph"] == "X" and each["name"] == "multi_node_mean_grad" and each["args"]["iteration"] >= 2
    ]
    waiting_s = sum(each["args"]["waiting_us"] for each in exchanges) / 1e6
    assert waiting_s == pytest.approx(sum(each.fact.waiting_s for each in seen.all(CommunicationTime)))
    tails = {each["id"]: each for each in events if each["ph"] == "s"}
    heads = {each["id"]: each for each in events if each["ph"] == "f"}
    assert tails.keys() == heads.keys()
    assert len([each for each in tails.values() if each["pid"] == rank + 1]) >= 3 * 39
    for number, tail in tails.items():
        head = heads[number]
        assert tail["ts"] < head["ts"]  # Perfetto drops others
        for end in (tail, head):
            assert any(
                each["pid"] == end["pid"] and each["ts"] <= end["ts"] < each["ts"] + each["dur"]
                for each in events
                if each["ph"] == "X" and each["tid"] == end["tid"]
            )


@needs_chainer
def test_a_delay_is_blamed_though_clocks_are_shifted(tmp_path: Path) -> None:
    can = subprocess.run(["unshare", "-T", "--monotonic", "5", "true"], capture_output=True, check=False)
    if can.returncode:
        pytest.skip("no time namespaces here (they need root and Linux 5.6)")
    seen, out = profiled(tmp_path, "--phase", "data", "--rank", "2", shift_clocks=True)
    offsets = {each.rank: each.fact for each in seen.all(RankClock)}
    assert all(not each.shared for each in offsets.values())
    assert {rank: round(each.offset_s) for rank, each in offsets.items()} == {1: 1000, 2: 2000, 3: 3000}
    assert_blamed(seen, 2, "data", injected_s(out))


@needs_chainer
def test_a_healthy_run_blames_nobody_and_computes_the_same(tmp_path: Path) -> None:
    script = str(SCRIPTS / "healthy_naive_ranks.py")
    plain = subprocess.run(
        [str(MPIEXEC), "-n", "2", sys.executable, script], capture_output=True, text=True, timeout=60
    )
    command = [sys.executable, "-m", "chainerdoctor", "profile-comm", "-n", "2", "--out", str(tmp_path / "run"), script]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    losses = [line for line in plain.stdout.splitlines() if re.match(r"\d+ ", line)]
    assert len(losses) == 50
    assert [line for line in done.stdout.splitlines() if re.match(r"\d+ \S+$", line)] == losses
    assert "CD650" not in done.stdout
