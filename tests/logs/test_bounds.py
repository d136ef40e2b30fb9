"""Memory does not grow with the file, and pathological input costs no more than its length."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tests" / "bench"), str(ROOT / "tests" / "fuzz")]

PEAK = """
import resource, sys
from chainerdoctor.logs.gather import read_logs
read_logs([sys.argv[1]])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_kib(path):
    done = subprocess.run([sys.executable, "-c", PEAK, str(path)], stdout=subprocess.PIPE, check=True)
    return int(done.stdout)


def write_distinct(path, lines):
    """Lines of which no two are alike, even without digits, and hosts, threads and messages without end."""
    rng = random.Random(2)
    letters = "abcdefghijklmnopqrstuvwxyz"
    with open(path, "w") as file:
        for i in range(lines):
            word = "".join(rng.choice(letters) for _ in range(12))
            file.write(f"{word} {word[::-1]}\n")
            file.write(f"host{i}:{i}:{i} [0] NCCL INFO Channel 00/0 : {i}[{i}] -> {i + 1}[{i}] via NET/IB/0\n")
            file.write(f"host{i}:{i}:{i} [0] a.cc:1 NCCL WARN {word}\n")


def test_memory_levels_off(tmp_path):
    small, large = tmp_path / "small", tmp_path / "large"
    write_distinct(small, 100_000)
    write_distinct(large, 200_000)
    assert peak_kib(large) < 1.15 * peak_kib(small)


@pytest.mark.parametrize("seed", [1, 2])
def test_fuzz_for_a_moment(seed):
    import fuzz_logs

    assert fuzz_logs.run(400, seed, tell=lambda _: None) >= 400
