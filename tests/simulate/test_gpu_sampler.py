"""The memory sampler: what it reads, that no sample is lost without being counted, and how it ends."""

import os
import signal
import subprocess
import sys
import time

import pytest

SAMPLE = """
import json, sys, threading, time
from chainerdoctor.instrument.gpu_sampler import GpuSampler, SamplerFailed
busy = []
def work():
    while not busy: sum(range(50))
if "busy" in sys.argv: threading.Thread(target=work).start()
try:
    with GpuSampler(json.loads(sys.argv[1]), 0.001, int(sys.argv[2])) as sampler:
        time.sleep(float(sys.argv[3]))
    out = {"samples": [[s.at_s, list(s.used_bytes)] for s in sampler.samples()], "report": sampler.report()._asdict()}
except SamplerFailed as error:
    out = {"failed": str(error)}
busy.append(1)
print(json.dumps(out))
"""


def sample(made, devices="[0]", capacity=100000, seconds=1.0, *more):
    return made.python(SAMPLE, devices, str(capacity), str(seconds), *more)


@pytest.mark.parametrize("load", ["", "busy"])
def test_every_deadline_is_sampled_or_counted_as_missed(machine, load):
    made = machine("gpus = 2\n[gpu 0]\nmemory_used = 3GiB\n[gpu 1]\nmemory_used = 5GiB\n")
    got = sample(made, "[1, 0]", 100000, 1.0, load)
    samples, report = got["samples"], got["report"]
    assert {tuple(used) for _, used in samples} == {(5 << 30, 3 << 30)}
    assert report["taken"] == len(samples) > 100
    times = [at for at, _ in samples]
    assert times == sorted(times)
    deadlines = round((times[-1] - times[0]) / 0.001) + 1
    # the last sample may be late itself, by no more than the largest gap
    slack = max(b - a for a, b in zip(times, times[1:])) / 0.001 + 2
    assert abs(report["taken"] + report["missed"] - deadlines) <= slack
    assert report["overwritten"] == 0
    assert report["refusal"] == ""


def test_spikes_shorter_than_a_read_are_seen_at_their_rate(machine):
    """A spike of 3 ms every 7 ms: about 3 of 7 samples see it. 7 and 1 ms share no beat that could hide it."""
    made = machine("gpus = 1\n[gpu 0]\nmemory_used = 1GiB + spike(2GiB, 7.1ms, 3ms)\n")
    samples = sample(made)["samples"]
    high = sum(used[0] == 3 << 30 for _, used in samples)
    assert {used[0] for _, used in samples} == {1 << 30, 3 << 30}
    assert 0.3 < high / len(samples) < 0.55


def test_a_full_ring_keeps_the_newest_and_counts_the_rest(machine):
    got = sample(machine("gpus = 1\n"), "[0]", 50, 0.5)
    assert len(got["samples"]) == 50
    assert got["report"]["overwritten"] == got["report"]["taken"] - 50 > 0


def test_a_reading_that_fails_is_no_number(machine):
    made = machine("gpus = 2\n[gpu 1]\nmemory_used = 1GiB + error(TIMEOUT, 100s)\n")
    made.variables["CHAINERDOCTOR_SIM_T0"] = repr(time.time() - 200)
    got = sample(made, "[0, 1]", 1000, 0.2)
    assert all(used == [0, None] for _, used in got["samples"])
    assert got["report"]["refusal"].startswith("GPU 1: nvmlDeviceGetMemoryInfo")


@pytest.mark.parametrize(
    ("scenario", "devices", "said"),
    [
        ("gpus = 1\n", "[3]", "GPU 3: nvmlDeviceGetHandleByIndex"),
        ("gpus = 1\n[call nvmlInit*]\nerror = DRIVER_NOT_LOADED\n", "[0]", "nvmlInit"),
        ("gpus = 1\n[call nvmlInit*]\ncrash = yes\n", "[0]", "its process"),
    ],
)
def test_a_start_that_fails_is_one_line(machine, scenario, devices, said):
    got = sample(machine(scenario), devices, 1000, 0.1)
    assert said in got["failed"]
    assert "\n" not in got["failed"]


def test_a_driver_call_that_blocks_does_not_hold_up_the_end(machine):
    got = sample(machine("gpus = 1\n[call nvmlDeviceGetMemoryInfo_v2]\nblock = forever\nat = 20\n"), "[0]", 1000, 0.3)
    assert len(got["samples"]) == 19


def test_the_sampler_ends_with_its_parent(machine):
    made = machine("gpus = 1\n")
    code = (
        "import sys, time\nfrom chainerdoctor.instrument.gpu_sampler import GpuSampler\n"
        "s = GpuSampler([0]); s.start(); print(s._child.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], env=made.environ(), stdout=subprocess.PIPE)
    child = int(parent.stdout.readline())
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for _ in range(500):
        if not _runs(child):
            return
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    pytest.fail("the sampler outlived its parent")


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
