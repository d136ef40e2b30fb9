"""Throw made-up and mutated logs at the readers: no exception, no crashed rule, no run longer than linear.

Run as a script: ``python tests/fuzz/fuzz_logs.py [inputs] [seed]`` (default 100,000). Inputs are fixtures of this
project, lines of theirs mixed and mutated, and lines built from the parsers' own words; a folder of captures named by
``CHAINERDOCTOR_CAPTURES`` joins in. Every input is read and judged; long inputs of one repeated line, which is what
makes a bad regular expression explode, are timed at two lengths.
"""

from __future__ import annotations

import gzip
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Callable, List, Tuple

from chainerdoctor.findings import CRASHED
from chainerdoctor.judging import judge
from chainerdoctor.logs.gather import log_rules, read_logs
from chainerdoctor.logs.recognise import LOOKED_AT
from chainerdoctor.report.as_json import verdict_to_json
from chainerdoctor.report.topology import as_topology, as_topology_svg

ROOT = Path(__file__).resolve().parent.parent.parent

#: Length of one line, short and long, for the linear check; the long one is still below what is cut.
SHORT, LONG = 3_000, 48_000
#: Linear would be 16 times as long; a quadratic parser needs 256 times.
MOST_RATIO = 64
#: Below this many seconds for the long line there is nothing to complain about, whatever the ratio.
QUICK_S = 0.05

_PIECES = (
    "NCCL INFO ", "NCCL WARN ", " INFO ", " WARN ", "node01:12:34 [0] ", "[1,0]<stdout>:", "0: ", "(pid=7) ", "[3] ",
    "Channel 00/0 : 0[1b000] -> 1[3b000] via P2P/IPC", "Channel 00/02 :    0   1", "Trees [0] 1/-1/-1->0->-1",
    "comm 0x55 rank 0 nranks 2 cudaDev 0 busId 1b - Init COMPLETE",
    "AllReduce: opCount 1 sendbuff 0x1 recvbuff 0x2 count ", "NVRM: Xid (PCI:0000:3b:00): 79, ",
    "SXid (PCI:0000:3b:00.0): 20034, Fatal, ", "kern  :warn  : ", "[  12.5] ",
    "2025-01-02T03:04:05,678901+00:00 ", "Mar  3 10:00:01 gpu-a kernel: ", "Traceback (most recent call last):",
    "ValueError: ", "| NVIDIA-SMI 525.1 ", "==============NVSMI LOG==============", "GPU 00000000:3B:00.0",
    "    ECC Errors",
    "        Pending : Yes", "GPU 0: X (UUID: GPU-11111111)", "\t Link 0: 25 GB/s", "\tGPU0\tGPU1\tmlx5_0",
    "GPU0\t X \tNV4\tSYS",
    "CA 'mlx5_0'", "\tPort 1:", "\t\tState: Active", "# nThread 1", "# Out of bounds values : 0 OK",
    "uuid, pci.bus_id, name",
    "slots ", "daemon ", "killed ", "memory ", "connect() to ", "Got completion from peer ", "set by environment to ",
    "\x1b[4m", "\x00", "\r", "\t", " ", ":", "[", "]", "(", ")", "0", "9" * 30, "a" * 40, "\u2028", "\ufffd",
)  # fmt: skip


def corpus() -> List[bytes]:
    """Fixtures of this project, and captures if a folder is named."""
    folders = [ROOT / "fixtures" / "rules", ROOT / "fixtures" / "logs"]
    if os.environ.get("CHAINERDOCTOR_CAPTURES"):
        folders.append(Path(os.environ["CHAINERDOCTOR_CAPTURES"]))
    files = [p for f in folders for p in sorted(f.rglob("*")) if p.suffix in (".log", ".txt") and p.is_file()]
    return [p.read_bytes()[:20_000] for p in files]


def made_line(rng: random.Random) -> bytes:
    """A line of the parsers' own words in any order."""
    return "".join(rng.choice(_PIECES) for _ in range(rng.randrange(1, 9))).encode("utf-8")


def mutated(data: bytes, rng: random.Random) -> bytes:
    """The bytes with some of them changed, removed, doubled or moved."""
    made = bytearray(data)
    for _ in range(rng.randrange(1, 12)):
        if not made:
            break
        at = rng.randrange(len(made))
        kind = rng.randrange(6)
        if kind == 0:
            made[at] = rng.randrange(256)
        elif kind == 1:
            del made[at : at + rng.randrange(1, 40)]
        elif kind == 2:
            made[at:at] = made[at : at + rng.randrange(1, 80)]
        elif kind == 3:
            made[at:at] = made_line(rng)
        elif kind == 4:
            made[at:at] = str(rng.choice((0, -1, 2**31, 2**64, 10**40))).encode()
        else:
            made[at:at] = b"\n"
    return bytes(made)


def made_input(files: List[bytes], rng: random.Random) -> bytes:
    """One input: a mutated fixture, lines of several mixed, or lines made up."""
    kind = rng.randrange(10)
    if kind < 4:
        data = rng.choice(files)
        start = rng.randrange(max(1, len(data) - 4000))
        return mutated(data[start : start + rng.randrange(100, 4000)], rng)
    if kind < 7:
        lines = [line for data in rng.sample(files, 3) for line in data.split(b"\n")[:60]]
        rng.shuffle(lines)
        return mutated(b"\n".join(lines[:40]), rng)
    if kind < 9:
        return b"\n".join(made_line(rng) for _ in range(rng.randrange(1, 40)))
    data = mutated(rng.choice(files)[:3000], rng)
    if rng.random() < 0.5:
        packed = gzip.compress(data)
        return packed[: rng.randrange(len(packed))] if rng.random() < 0.5 else packed
    return data.decode("utf-8", "replace").encode("utf-16")


def check(data: bytes, path: str) -> None:
    """Read and judge one input.

    Raises:
        AssertionError: a rule crashed. Anything else that is raised is the readers' fault as well.
    """
    with open(path, "wb") as file:
        file.write(data)
    snapshot = read_logs([path], utc_offset_s=0, now_s=0.0)
    for verdict in judge(snapshot, log_rules()):
        assert verdict.status != CRASHED, (verdict.code, verdict.reason)
        verdict_to_json(verdict)
    as_topology(snapshot)
    as_topology_svg(snapshot)


def seconds(data: bytes, path: str) -> float:
    """Processor seconds for one input."""
    before = time.process_time()
    check(data, path)
    return time.process_time() - before


def check_linear(line: bytes, path: str) -> float:
    """Time a piece repeated to one long line, and the line repeated to a long file, at two lengths.

    Raises:
        AssertionError: the long one takes more than :data:`MOST_RATIO` times as long.
    """
    worst = 0.0
    shapes: Tuple[Callable[[int], bytes], ...] = (
        lambda n: (line * (n // max(1, len(line)) + 1))[:n],
        lambda n: line[: len(line) // 2] + b" " * n + line[len(line) // 2 :],
        lambda n: line[: len(line) // 2] + b"9" * n + line[len(line) // 2 :],
        lambda n: ((line + b"\n") * (n // (len(line) + 1) + 1))[:n],
    )
    for shape in shapes:
        short, long = seconds(shape(SHORT), path), seconds(shape(LONG), path)
        worst = max(worst, long)
        if long > QUICK_S and long > MOST_RATIO * max(short, 1e-3):
            raise AssertionError(f"{short:.4f} s for {SHORT} bytes, {long:.4f} s for {LONG}: {line[:200]!r}")
    return worst


def run(inputs: int, seed: int, tell: Callable[[str], None] = print) -> int:
    """Check that many inputs; returns the number checked. The first failure's input is written beside the seed."""
    rng = random.Random(seed)
    files = corpus()
    assert LOOKED_AT < LONG
    done, slowest, began = 0, 0.0, time.monotonic()
    folder = tempfile.mkdtemp(prefix="fuzz_logs.")
    path = os.path.join(folder, "input.log")
    while done < inputs:
        if done % 250 == 0:
            data = rng.choice([made_line(rng), rng.choice(rng.choice(files).split(b"\n")) or b"x"])[:400]
            slowest = max(slowest, check_linear(data, path))
            done += 8
        else:
            check(made_input(files, rng), path)
            done += 1
        if done % 5000 < 1:
            tell(f"{done} inputs, {time.monotonic() - began:.0f} s, slowest line of {LONG} bytes {slowest:.3f} s")
    os.unlink(path)
    os.rmdir(folder)
    return done


if __name__ == "__main__":
    total = run(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    print(f"{total} inputs: no exception, no crashed rule, nothing longer than linear")
