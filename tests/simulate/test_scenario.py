"""The scenario's language: what it accepts, and how it complains."""

import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainerdoctor.simulate.scenario import ScenarioError, describe_keys, gpu_keys, load, parse
from chainerdoctor.simulate.values import ValueProblem, parse_time_s, parse_value

GIB = 1 << 30


def problems(text):
    with pytest.raises(ScenarioError) as caught:
        parse(text, "m.scn")
    return [(p.line, p.message) for p in caught.value.problems]


def test_values_of_every_form():
    value = parse_value("4GiB + ramp(60GiB, 30s) + spike(20GiB, 1s, 20ms) + cuda", "bytes")
    assert value.base == 4 * GIB
    assert value.terms == (("ramp", (60 * GIB, 30.0)), ("spike", (20 * GIB, 1.0, 0.02)), ("cuda", ()))
    assert parse_value("unsupported", "number").error == 3
    assert (parse_value("70 + error(GPU_IS_LOST, 1min)", "celsius").error_from_s) == 60.0
    assert parse_value("sw_thermal|hw_slowdown", "throttle").base == 0x28
    assert parse_value("0x60", "throttle").base == 0x60
    assert parse_value("300W", "milliwatts").base == 300_000
    assert parse_value("10 + step(-3, 5s)", "number").terms == (("step", (-3.0, 5.0)),)


@pytest.mark.parametrize(
    ("text", "unit", "said"),
    [
        ("300", "milliwatts", "needs a unit (W, mW)"),
        ("4GB", "bytes", "unit 'GB' is not one of"),
        ("cuda", "percent", "no amount of memory"),
        ("ramp(1GiB)", "bytes", "ramp takes 2 arguments, not 1"),
        ("ramp(1GiB, 0s)", "bytes", "times above 0"),
        ("ramp(1GiB, 30)", "bytes", "not a time with a unit"),
        ("wave(1, 1s)", "number", "'wave' is not one of"),
        ("error(LOST)", "number", "is no error code"),
        ("1 +", "number", "empty term"),
        ("", "number", "no value"),
        ("hot", "throttle", "no throttle reason"),
        ("maybe", "flag", "is not on or off"),
    ],
)
def test_a_wrong_value_is_told(text, unit, said):
    with pytest.raises(ValueProblem, match=".*" + said.replace("(", r"\(").replace(")", r"\)") + ".*"):
        parse_value(text, unit)


@given(st.floats(min_value=0, max_value=1e6, allow_nan=False), st.sampled_from(["us", "ms", "s", "min", "h"]))
def test_times_round_trip(number, unit):
    seconds = {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}[unit]
    assert parse_time_s(f"{number!r}{unit}") == pytest.approx(number * seconds)


def test_star_sections_apply_first_wherever_they_stand():
    scenario = parse("gpus = 3\n[gpu 1]\nutil_gpu = 5\n[gpu *]\nutil_gpu = 9\n[gpu 1-2]\ntemperature = 80\n")
    assert [gpu.numbers["util_gpu"].base for gpu in scenario.gpus] == [9, 5, 9]
    assert [gpu.numbers["temperature"].base for gpu in scenario.gpus] == [35, 80, 80]


def test_every_kind_of_section():
    scenario = parse(
        """
        gpus = 4
        driver_version = 535.54.03
        [gpu 3]
        lost_at = 60s
        processes = 12 4GiB, 13 1MiB graphics
        [gpu 0]
        processes = cuda
        [pair 1-0]
        topology = SYS
        p2p_read = gpu_not_supported
        [link 2:3-4]
        state = down
        remote = switch
        crc_errors = 7
        [mig 0:0]
        memory_total = 5GiB
        [call nvmlDeviceGetMemoryInfo* gpu 2]
        error = GPU_IS_LOST
        from = 2s
        [call ncclAllReduce rank 1]
        block = forever
        at = 3
        [rank 2]
        joins = no
        version = 21805
        [rank 0]
        fail_at = 7
        fail_with = internal_error
        [ranks 1-3]
        delay = 2ms
        """
    )
    assert scenario.gpus[3].lost_at_s == 60
    assert [(p.pid, p.size_bytes, p.graphics) for p in scenario.gpus[3].processes] == [
        (12, 4 * GIB, False),
        (13, 1 << 20, True),
    ]
    assert scenario.gpus[0].cuda_processes
    assert scenario.wiring.pairs[0, 1].topology == 50
    assert scenario.wiring.pairs[0, 1].p2p["p2p_read"] == 2
    assert scenario.wiring.links[2, 4].down
    assert scenario.wiring.links[2, 4].remote == -1
    assert not scenario.wiring.links[2, 5].down
    first, second = scenario.faults.calls
    assert (first.call, first.gpu, first.error, first.from_s) == ("nvmlDeviceGetMemoryInfo*", 2, 15, 2.0)
    assert (second.rank, second.block_s, second.at) == (1, math.inf, 3)
    assert scenario.faults.ranks[2].absent
    assert scenario.faults.ranks[0].fail_with == 3
    assert scenario.faults.between == {(1, 3): 0.002}


def test_every_problem_is_found_with_its_line_and_the_nearest_key():
    found = problems(
        "gpus = 2\ndriver = 5\n[gpu 0]\ntempurature = 70\n[gpu 5]\n[pear 0-1]\n[gpu 0]\nnonsense\nutil_gpu = x\n"
    )
    assert found == [
        (2, "unknown key 'driver'; did you mean 'driver_version'?"),
        (4, "unknown key 'tempurature'; did you mean 'temperature'?"),
        (5, "there is no GPU 5: the scenario has 2 (numbered from 0)"),
        (6, "unknown section [pear 0-1]; did you mean [pair …]?"),
        (7, "[gpu 0] already stands in line 3"),
        (8, "'nonsense' is neither a [section] nor KEY = VALUE"),
        (9, "'x' is not a number"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 0, "'gpus = N' is missing"),
        ("gpus = 65\n", 1, "not a number from 0 to 64"),
        ("gpus = 2\n[pair 0-0]\n", 2, "is no pair"),
        ("gpus = 2\n[link 0:99]\n", 2, "chooses no NVLink"),
        ("gpus = 2\n[mig 0:1]\n", 2, "needs [mig 0:0]"),
        ("gpus = 2\n[call nvmlDeviceGetMemroyInfo]\n", 2, "did you mean 'nvmlDeviceGetMemoryInfo'?"),
        ("gpus = 2\n[call nvmlInit_v2 cpu 1]\n", 2, "only 'gpu N' and 'rank N'"),
        ("gpus = 2\n[gpu 0]\nbus_id = 07:00\n", 3, "not of the form"),
        ("gpus = 2\n[gpu 0]\nprocesses = me 1GiB\n", 3, "is no process"),
        ("gpus = 2\nutil_gpu = 5\nutil_gpu = 6\n", 3, "already set in line 2"),
        ("gpus = 2\ndriver_version = new\n", 2, "not a version"),
    ],
)
def test_one_problem(text, line, said):
    assert any(at == line and said in message for at, message in problems(text)), problems(text)


def test_the_error_is_one_line(tmp_path):
    path = tmp_path / "m.scn"
    path.write_text("gpus = 1\n[gpu 0]\na = 1\nb = 2\n")
    with pytest.raises(ScenarioError) as caught:
        load(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{path}:3: unknown key 'a'")
    assert str(caught.value).endswith("(and 1 more)")
    with pytest.raises(ScenarioError, match="cannot be read: No such file"):
        load(tmp_path / "none.scn")


def test_the_key_table_is_read_whole():
    """keys.h is matched line by line: a line that does not match would be lost in silence."""
    from chainerdoctor.simulate.scenario import SOURCES, _keys

    lines = [line for line in (SOURCES / "keys.h").read_text().splitlines() if line.startswith(("GPU_", "SYSTEM_"))]
    read = sum(len(_keys(kind)) for kind in ("GPU_NUMBER", "GPU_TEXT", "SYSTEM_TEXT"))
    assert read == len(lines) > 80
    assert all(key.meaning for key in gpu_keys())
    assert "temperature" in describe_keys()


def test_the_sizes_that_c_and_python_share_agree():
    import re

    from chainerdoctor.simulate import faults, links, scenario, values

    header = (scenario.SOURCES / "scenario.h").read_text()
    sizes = dict(re.findall(r"\b(SIM_[A-Z]+) = (\d+)", header))
    assert int(sizes["SIM_GPUS"]) == scenario.MOST_GPUS
    assert int(sizes["SIM_LINKS"]) == links._MOST_LINKS
    assert int(sizes["SIM_MIGS"]) == links._MOST_MIGS
    assert int(sizes["SIM_RANKS"]) == faults._MOST_RANKS
    assert int(sizes["SIM_TERMS"]) == values._MOST_TERMS
    assert int(sizes["SIM_TEXT"]) - 1 == scenario._MOST_TEXT


@pytest.mark.parametrize("path", sorted((Path(__file__).resolve().parents[2] / "fixtures" / "scenarios").glob("*.scn")))
def test_the_scenarios_of_the_fixtures_are_right(path):
    assert load(path).gpus
