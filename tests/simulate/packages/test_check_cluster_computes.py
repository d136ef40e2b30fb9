"""check-cluster's short computations through the real CuPy on simulated GPUs: each fault is found where it is, and a
healthy machine yields nothing."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from chainerdoctor.simulate import environment

ROOT = Path(__file__).resolve().parents[3]
HEALTHY = "gpus = 3\n"
#: Rules that judge what was computed.
JUDGED = "CD107,CD234,CD235,CD236,CD237,CD239,CD240,CD324,CD325,CD326,CD412,CD001"


@pytest.fixture
def check(programs, tmp_path):
    """check(scenario, ranks) -> ({code: where of each finding}, facts by kind, seconds)."""

    def run(text, ranks=3, mpi="mpich", more=()):
        scenario = tmp_path / "machine.scn"
        scenario.write_text(text)
        shared = tmp_path / "shared"
        shared.mkdir(exist_ok=True)
        saved = tmp_path / "saved.json"
        python = programs("python", mpi)
        began_s = time.monotonic()
        done = subprocess.run(
            [python, "-m", "chainerdoctor", "check-cluster", "-n", str(ranks), "--timeout", "100", "--select", JUDGED]
            + ["--format", "json", "--save", str(saved), *more],
            env={
                **{k: v for k, v in os.environ.items() if k != "CUDA_VISIBLE_DEVICES"},
                **environment(scenario, shared=shared),
                "PYTHONPATH": str(ROOT),
                "PATH": f"{os.path.dirname(python)}:/usr/bin:/bin",
            },
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.returncode in (0, 1, 3), done.stderr
        found = {
            verdict["code"]: [finding["where"] for finding in verdict["findings"]]
            for verdict in json.loads(done.stdout)["verdicts"]
            if verdict["findings"]
        }
        facts = {}
        for seen in json.loads(saved.read_text())["sightings"]:
            facts.setdefault(seen["fact"]["kind"], []).append({**seen["fact"], "of_rank": seen["rank"]})
        return found, facts, time.monotonic() - began_s

    return run


@pytest.mark.parametrize("mpi", ["mpich", "openmpi"])
def test_a_healthy_machine_computes_rightly(check, mpi):
    found, facts, _ = check(HEALTHY, mpi=mpi)
    assert found == {}
    assert [fact["index"] for fact in facts["GpuProduct"]] == [0, 1, 2]
    assert {(fact["index"], fact["other"]) for fact in facts["GpuPeerCopy"]} == {
        (one, two) for one in range(3) for two in range(3) if one != two
    }
    # Five ways of copying on each of three devices.
    assert len({(fact["index"], fact["direction"]) for fact in facts["GpuCopy"]}) == 15
    assert sorted(fact["of_rank"] for fact in facts["NcclAllreduce"]) == [0, 1, 2]
    assert {fact["state"] for fact in facts["NcclAllreduce"]} == {"complete"}
    assert [fact["reached"] for fact in facts["NcclReach"]] == [True, True]


def name_of_host():
    return os.uname().nodename


FAULTS = {
    "a product with one wrong bit": ("[call cublas* gpu 1]\nflip = yes\n", {"CD234": ["{h}/GPU 1"]}),
    "copies that arrive wrong": ("[call cudaMemcpyAsync gpu 2]\nflip = yes\n", {"CD235": ["{h}/GPU 2"]}),
    "peer copies that arrive wrong": (
        "[call cudaMemcpyPeerAsync gpu 1]\nflip = yes\n",
        {"CD235": ["{h}/GPUs 0–2"]},
    ),
    "a product that is refused": (
        "[call cublas*emm* gpu 0]\nerror = cudaErrorECCUncorrectable\n".replace("*emm*", "*"),
        {"CD240": ["{h}/GPU 0"]},
    ),
    "memory that cannot be had": (
        "[call cudaMalloc gpu 1]\nerror = cudaErrorMemoryAllocation\n",
        {"CD240": ["{h}/GPU 1"]},
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_one_device_is_found_there(check, name):
    fault, wanted = FAULTS[name]
    found, _, _ = check(HEALTHY + fault, ranks=1)
    told = {code: [where.replace(name_of_host(), "{h}") for where in wheres] for code, wheres in found.items()}
    for code, wheres in wanted.items():
        assert told.pop(code, [])[:1] == wheres
    assert set(told) <= {"CD240"}  # pairs of a device that cannot allocate fail as well


def test_a_device_that_crashes_the_process_leaves_the_others_judged(check):
    found, facts, _ = check(HEALTHY + "[call cublas* gpu 0]\ncrash = yes\n", ranks=1)
    assert found == {"CD240": [f"{name_of_host()}/GPU 0"]}
    assert [fact["index"] for fact in facts["GpuProduct"]] == [1, 2]
    assert {(fact["index"], fact["other"]) for fact in facts["GpuPeerCopy"]} == {(1, 2), (2, 1)}


def test_a_device_that_blocks_costs_its_patience_once(check):
    found, facts, took_s = check(HEALTHY + "[call cublas* gpu 1]\nblock = forever\n", ranks=1)
    assert found == {"CD240": [f"{name_of_host()}/GPU 1"]}
    assert [fact["index"] for fact in facts["GpuProduct"]] == [0, 2]
    (failed,) = facts["GpuWorkloadFailed"]
    assert failed["hung"]
    assert took_s < 10.0 + 45.0  # its patience, and less than a second one beside all the rest


def test_one_slow_device_is_the_odd_one(check):
    found, _, _ = check(HEALTHY + "[call cublas* gpu 2]\ndelay = 400ms\n", ranks=1)
    assert found == {"CD236": [f"{name_of_host()}/GPU 2"]}


def test_slow_copies_of_one_device(check):
    found, _, _ = check(HEALTHY + "[call cudaMemcpyAsync gpu 0]\ndelay = 120ms\n", ranks=1)
    assert found == {"CD237": [f"{name_of_host()}/GPU 0"]}


def test_a_rank_that_never_joins_nccl(check):
    found, facts, _ = check(HEALTHY + "[rank 1]\njoins = no\n")
    assert set(found) == {"CD326"}
    assert {fact["hung"] for fact in facts["NcclAllreduce"]} == {True}


def test_a_rank_whose_nccl_fails_is_named(check):
    found, _, _ = check(HEALTHY + "[rank 2]\nfail_at = 1\nfail_with = system_error\n")
    assert list(found) == ["CD326"]
    assert f"{name_of_host()}/rank 2" in found["CD326"][0]


def test_a_wrong_sum_by_nccl(check):
    found, _, _ = check(HEALTHY + "[rank 0]\nflip_at = 2\nflip_element = 5\nflip_bit = 20\n")
    assert set(found) == {"CD325"}


def test_nothing_is_computed_when_not_asked(check):
    found, facts, _ = check(HEALTHY + "[call cublas* gpu 1]\nflip = yes\n", ranks=2, more=["--no-active"])
    assert found == {}
    assert not {"GpuProduct", "GpuCopy", "MpiAllreduce", "NcclAllreduce", "CpuProduct"} & set(facts)
