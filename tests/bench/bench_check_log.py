"""How fast check-log reads a large NCCL log, against ``grep -c NCCL`` and a bare Python loop over its lines.

Run as a script: ``python tests/bench/bench_check_log.py [MiB] [rounds]``. Each reader runs in a process of its own, so
that memory is its own too, and the readers take turns, so that what else the machine does hits all alike.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Dict, List, Tuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

import big_log

_CHECK = """
import sys
from chainerdoctor.judging import judge
from chainerdoctor.logs.gather import log_rules, read_logs
judge(read_logs([sys.argv[1]]), log_rules())
"""
_LOOP = """
import sys
count = 0
with open(sys.argv[1], "rb") as file:
    for line in file:
        count += 1
"""
READERS: Dict[str, List[str]] = {
    "check-log": [sys.executable, "-c", _CHECK],
    "grep -c NCCL": ["grep", "-c", "NCCL"],
    "Python line loop": [sys.executable, "-c", _LOOP],
}


def once(command: List[str], path: str) -> Tuple[float, float, float]:
    """(wall seconds, processor seconds, peak MiB) of one run, start-up included."""
    code = (
        "import json, resource, subprocess, sys, time\n"
        "t = time.perf_counter()\n"
        "subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True)  # grep stops at the first hit if it "
        "writes to /dev/null\n"
        "wall = time.perf_counter() - t\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(json.dumps([wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]))\n"
    )
    out = subprocess.run([sys.executable, "-c", code, *command, path], stdout=subprocess.PIPE, check=True)
    wall, cpu, peak = json.loads(out.stdout)
    return wall, cpu, peak


def measure() -> Dict[str, Any]:
    """The figures in the form of the common table."""
    made = readers(256, 5)
    ours, line_loop = made["readers"]["check-log"], made["readers"]["Python line loop"]
    seconds = {name: made["bytes"] / 1e6 / each["wall_mb_s"]["median"] for name, each in made["readers"].items()}
    speed, memory = ours["wall_mb_s"]["median"], ours["peak_mib"]
    return {
        "check-log, 256 MiB of 512 ranks, against a bare line loop": {
            "ours_s": seconds["check-log"],
            "peer_s": seconds["Python line loop"],
            "ratio": line_loop["wall_mb_s"]["median"] / speed,
            "mb_per_s": speed,
            "peak_mib": memory,
            "bar": f">= 60 MB/s: {speed:.0f}; memory <= 200 MB: {memory:.0f} MiB",
        }
    }


def readers(mib: int, rounds: int) -> Dict[str, Any]:
    """Median and spread (lowest, highest) of MB/s by wall clock and processor time, and peak MiB, of each reader."""
    made: Dict[str, Any] = {"mib": mib, "rounds": rounds, "load": os.getloadavg()[0], "readers": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "big.log")
        with open(path, "wb") as file:
            size = big_log.write(file, mib * 1024**2)
        made["bytes"] = size
        runs: Dict[str, List[Tuple[float, float, float]]] = {name: [] for name in READERS}
        for _ in range(rounds):
            for name, command in READERS.items():
                runs[name].append(once(command, path))
    for name, taken in runs.items():
        wall = sorted(size / 1e6 / w for w, _, _ in taken)
        cpu = sorted(size / 1e6 / max(c, 1e-3) for _, c, _ in taken)
        made["readers"][name] = {
            "wall_mb_s": _spread(wall),
            "cpu_mb_s": _spread(cpu),
            "peak_mib": round(max(p for _, _, p in taken), 1),
        }
    return made


def _spread(values: List[float]) -> Dict[str, float]:
    return {"median": round(statistics.median(values), 1), "low": round(values[0], 1), "high": round(values[-1], 1)}


def main() -> None:
    """Print the figures as a table."""
    mib = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    made = readers(mib, rounds)
    print(f"{made['bytes'] / 1e6:,.0f} MB, {made['rounds']} rounds, load {made['load']:.1f} at the start")
    print(f"{'reader':<18} {'MB/s wall (low-high)':>26} {'MB/s processor (low-high)':>28} {'peak MiB':>9}")
    for name, each in made["readers"].items():
        wall, cpu = each["wall_mb_s"], each["cpu_mb_s"]
        walls = f"{wall['median']:,.1f} ({wall['low']:,.1f}-{wall['high']:,.1f})"
        cpus = f"{cpu['median']:,.1f} ({cpu['low']:,.1f}-{cpu['high']:,.1f})"
        print(f"{name:<18} {walls:>26} {cpus:>28} {each['peak_mib']:>9,.1f}")


if __name__ == "__main__":
    main()
