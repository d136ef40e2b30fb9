"""Log lines laid against a training's stages."""

import calendar
import json

import pytest

from chainerdoctor.facts.log import StagedLine
from chainerdoctor.judging import judge
from chainerdoctor.logs.gather import log_rules, read_logs
from chainerdoctor.logs.stages import StageLogError, StageReader

START = calendar.timegm((2025, 3, 1, 10, 0, 0))


def write_stages(path, ranks=(0,)):
    with open(path, "w") as file:
        for rank in ranks:
            for i in range(10):
                for k, phase in enumerate(("forward", "backward", "allreduce", "update")):
                    file.write(
                        json.dumps({"t": START + 4 * i + k + rank * 0.25, "iteration": i, "phase": phase, "rank": rank})
                        + "\n"
                    )
    return str(path)


def test_a_warning_is_placed_in_its_iteration_and_phase(tmp_path):
    log = tmp_path / "nccl.log"
    # 10:00:22 is 22 s after the start: iteration 5 began at 20, its third phase at 22.
    log.write_text(
        "[2025-03-01 10:00:22] gpu-a:1:2 [0] net.cc:1 NCCL WARN Connect to 10.0.0.3<4> failed : Connection refused\n"
    )
    snapshot = read_logs([str(log)], stage_log=write_stages(tmp_path / "s.jsonl"), utc_offset_s=0, now_s=0.0)
    (placed,) = [s.fact for s in snapshot.all(StagedLine)]
    assert (placed.iteration, placed.phase, placed.gap_s) == (5, "allreduce", 0.0)
    (finding,) = {v.code: v for v in judge(snapshot, log_rules())}["CD356"].findings
    assert any(e.what == "training stage then" and e.seen == "iteration 5, allreduce" for e in finding.evidence)


def test_a_silence_is_placed_where_it_began(tmp_path):
    log = tmp_path / "nccl.log"
    lines = [f"[2025-03-01 10:00:{s:02d}] gpu-a:1:2 [0] NCCL INFO Connected all rings" for s in (1, 2, 3, 5, 30, 31)]
    log.write_text("\n".join(lines))
    snapshot = read_logs([str(log)], stage_log=write_stages(tmp_path / "s.jsonl"), utc_offset_s=0, now_s=0.0)
    longest = max((s.fact for s in snapshot.all(StagedLine)), key=lambda f: f.gap_s)
    assert (longest.line, longest.gap_s, longest.iteration, longest.phase) == (5, 25.0, 1, "backward")
    assert len({v.code: v for v in judge(snapshot, log_rules())}["CD388"].findings) == 1


def test_times_without_year_get_the_stage_logs_year(tmp_path):
    log = tmp_path / "syslog"
    log.write_text("Mar  1 10:00:09 gpu-a kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n")
    snapshot = read_logs([str(log)], stage_log=write_stages(tmp_path / "s.jsonl"), utc_offset_s=0, now_s=4e9)
    (placed,) = [s.fact for s in snapshot.all(StagedLine)]
    assert (placed.iteration, placed.phase) == (2, "backward")


def test_a_ranks_own_stages_are_used(tmp_path):
    stages = StageReader(write_stages(tmp_path / "s.jsonl", ranks=(0, 1))).read()
    assert stages.at(START + 1.1, 0)[2] == "backward"
    assert stages.at(START + 1.1, 1)[2] == "forward"
    assert stages.at(START + 1.1, 7)[3] == 0
    assert stages.at(START - 1, 0) is None
    assert stages.at(START + 10_000, 0) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not json\n",
        "[1]\n",
        '{"t": 1}\n',
        '{"t": "1", "iteration": 1, "phase": "x"}\n',
        '{"t": true, "iteration": 1, "phase": "x"}\n',
        '{"t": 1e999, "iteration": 1, "phase": "x"}\n',
        '{"t": NaN, "iteration": 1, "phase": "x"}\n',
        "[" * 100_000,
    ],
)
def test_what_is_no_stage_log_is_one_line(tmp_path, text):
    path = tmp_path / "s.jsonl"
    path.write_text(text)
    with pytest.raises(StageLogError) as caught:
        StageReader(str(path)).read()
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
