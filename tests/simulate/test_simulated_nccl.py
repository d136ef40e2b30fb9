"""Simulated NCCL between real processes, through ctypes: results against sums made here, and every fault."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

RANK = str(Path(__file__).with_name("nccl_rank.py"))


def start(machine, folder, size, operations, absent=(), **environ):
    environ.setdefault("NCCL_SOCKET_IFNAME", "lo")
    return {
        rank: subprocess.Popen(
            [sys.executable, RANK, str(rank), str(size), str(folder / "id"), *operations],
            env=machine.environ(PMI_RANK=str(rank), **environ), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in range(size)
    }  # fmt: skip


def finish(ranks, timeout=60):
    """What every rank printed: (JSON of the last line, log lines before it). Kills all on a time-out."""
    timer = threading.Timer(timeout, lambda: [child.kill() for child in ranks.values()])
    timer.start()
    out = {}
    for rank, child in ranks.items():
        text, errors = child.communicate()
        assert child.returncode == 0, (rank, child.returncode, text, errors)
        lines = text.splitlines()
        out[rank] = (json.loads(lines[-1]), lines[:-1])
    timer.cancel()
    return out


def run(machine, folder, size, operations, **environ):
    return finish(start(machine, folder, size, operations, **environ))


def source(count, rank):
    return [(i % 5) + rank for i in range(count)]


def shown(values):
    return list(values[:24]) + list(values[-3:])


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_collectives(machine, tmp_path, size):
    kinds = ("int8", "int32", "int64", "float32", "float64")
    counts = (1, 7, 1000, 20011)
    operations = [f"sum:{kind}:{count}" for kind in kinds for count in counts if kind != "int8" or count < 2000]
    others = [
        "prod",
        "max",
        "min",
        "avg",
        "reduce:int32:9",
        "broadcast:int64:1001",
        "reduce_scatter:int32:5",
        "all_gather:int32:6",
    ]
    operations += others + (["ring:float32:300000"] if size > 1 else [])
    got = run(machine("gpus = 0\n", ("nccl",)), tmp_path, size, operations)
    ranks = range(size)
    for rank, (out, _) in got.items():
        assert out["codes"] == [0] * len(operations)
        assert out["async"] == 0
        for operation, result in zip(operations, out["results"]):
            name, _, count = (
                (operation.split(":") + ["float32", "12"])[:3] if ":" in operation else (operation, "", "12")
            )
            columns = list(zip(*(source(int(count), r) for r in ranks)))
            if name == "sum":
                wanted = [sum(c) for c in columns]
            elif name in ("max", "min"):
                wanted = [(max if name == "max" else min)(c) for c in columns]
            elif name == "avg":
                wanted = [pytest.approx(sum(c) / size, rel=1e-6) for c in columns]
            elif name == "prod":
                wanted = [1] * 12
                for r in ranks:
                    wanted = [a * b for a, b in zip(wanted, source(12, r))]
            elif name == "reduce":
                wanted = [sum(c) for c in columns] if rank == size - 1 else [0] * 9
            elif name == "broadcast":
                wanted = source(1001, size - 1)
            elif name == "reduce_scatter":
                whole = [sum(c) for c in zip(*(source(5 * size, r) for r in ranks))]
                wanted = whole[rank * 5 : rank * 5 + 5]
            elif name == "all_gather":
                wanted = [v for r in ranks for v in source(6, r)]
            else:
                wanted = source(300000, (rank - 1) % size)
            assert result == shown(wanted), (size, rank, operation)


def test_a_failing_operation_leaves_nobody_blocked(machine, tmp_path):
    made = machine("gpus = 0\n[rank 1]\nfail_at = 3\nfail_with = internal_error\n", ("nccl",))
    got = run(made, tmp_path, 4, ["sum"] * 5)
    assert got[1][0]["codes"] == [0, 0, 3, 3, 3]
    assert got[1][0]["async"] == 3
    for rank in (0, 2, 3):
        assert got[rank][0]["codes"] == [0, 0, 6, 6, 6], rank  # remote process exited or there was a network error
        assert got[rank][0]["async"] == 6


def test_a_fault_of_one_call_on_one_rank(machine, tmp_path):
    made = machine("gpus = 0\n[call ncclAllGather rank 0]\nerror = system_error\n", ("nccl",))
    got = run(made, tmp_path, 2, ["sum", "all_gather"])
    assert got[0][0]["codes"] == [0, 2]
    assert got[1][0]["codes"] == [0, 6]


def test_one_flipped_bit(machine, tmp_path):
    """Bit 30 of a float32 is the top bit of its exponent: 6.0 = 0x40C00000 becomes 0x00C00000."""
    made = machine("gpus = 0\n[rank 2]\nflip_at = 2\nflip_element = 3\nflip_bit = 30\n", ("nccl",))
    got = run(made, tmp_path, 3, ["sum", "sum", "sum"])
    right = got[0][0]["results"][0]
    assert all(got[rank][0]["results"][i] == right for rank in range(3) for i in range(3) if (rank, i) != (2, 1))
    wrong = got[2][0]["results"][1]
    assert [i for i in range(12) if wrong[i] != right[i]] == [3]
    assert right[3] == 12.0
    import struct

    assert wrong[3] == struct.unpack("<f", struct.pack("<I", 0x41400000 ^ 1 << 30))[0]


def test_a_slow_rank_and_a_slow_pair(machine, tmp_path):
    took = {}
    for name, fault in (("none", ""), ("rank", "[rank 1]\ndelay = 400ms\n"), ("pair", "[ranks 0-1]\ndelay = 300ms\n")):
        got = run(machine("gpus = 0\n" + fault, ("nccl",)), tmp_path, 3, ["sum"] * 3)
        (tmp_path / "id").unlink()
        took[name] = min(sum(out["took_s"][1:]) for out, _ in got.values())
    # two operations after the first, which also takes up the ranks' different starts; half, as ranks leave an operation
    # at different moments
    assert took["rank"] > 0.4
    assert took["pair"] > 0.3
    assert took["none"] < took["pair"] / 2


def test_another_version_on_one_rank(machine, tmp_path):
    made = machine("gpus = 0\nnccl_version = 22005\n[rank 1]\nversion = 21805\n", ("nccl",))
    got = run(made, tmp_path, 3, ["sum"], NCCL_DEBUG="WARN")
    for rank, (out, lines) in got.items():
        assert out["init"] == 5, rank  # invalid usage
        assert out["version"] == (21805 if rank == 1 else 22005)
        assert any(
            "NCCL WARN Mismatched NCCL version detected : rank 1 version 21805 rank 0 version 22005" in line
            for line in lines
        )


def test_a_rank_that_never_joins_keeps_the_others_waiting(machine, tmp_path):
    made = machine("gpus = 0\n[rank 1]\njoins = no\n", ("nccl",))
    ranks = start(made, tmp_path, 3, ["sum"])
    try:
        for child in ranks.values():
            with pytest.raises(subprocess.TimeoutExpired):
                child.wait(1)
    finally:
        for child in ranks.values():
            child.kill()
            child.communicate()


def test_a_killed_rank_is_a_remote_error(machine, tmp_path):
    made = machine("gpus = 0\n[call ncclAllReduce rank 2]\ncrash = yes\nat = 2\n", ("nccl",))
    ranks = start(made, tmp_path, 3, ["sum", "sum"])
    ranks[2].communicate(timeout=60)
    assert ranks.pop(2).returncode == -11
    got = finish(ranks)
    assert all(out["codes"] == [0, 6] for out, _ in got.values())


def test_log_lines_have_the_real_form(machine, tmp_path):
    import re

    got = run(machine("gpus = 0\n", ("nccl",)), tmp_path, 2, ["sum"], NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="INIT,COLL")
    head = r"^\S+:\d+:\d+ \[\d+\] NCCL INFO "
    text = "\n".join(got[0][1])
    for wanted in (
        r"Bootstrap : Using lo:127\.0\.0\.1<0>$",
        r"NCCL version 2\.20\.5\+cuda12\.2$",
        r"comm 0x[0-9a-f]+ rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId [0-9a-f]+ commId 0x[0-9a-f]+ - Init START$",
        r"comm 0x[0-9a-f]+ rank 0 nranks 2 cudaDev 0 nvmlDev 0 busId [0-9a-f]+ commId 0x[0-9a-f]+ - Init COMPLETE$",
        r"AllReduce: opCount 0 sendbuff 0x[0-9a-f]+ recvbuff 0x[0-9a-f]+ count 12 datatype 7 op 0 root 0 comm 0x[0-9a-f]+ \[nranks=2\]",
    ):
        assert re.search(head + wanted, text, re.M), (wanted, text)
    assert "NCCL version" not in "\n".join(got[1][1])


def test_no_interface_that_suits(machine, tmp_path):
    got = run(machine("gpus = 0\n", ("nccl",)), tmp_path, 1, [], NCCL_SOCKET_IFNAME="nothere", NCCL_DEBUG="WARN")
    assert got[0][0]["init"] == 3
    assert any("Bootstrap : no socket interface found" in line for line in got[0][1])
