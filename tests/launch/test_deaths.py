"""Which rank was gone first, as the process that started them sees it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List

import pytest

from chainerdoctor.instrument.ring import Ring, ring_path
from chainerdoctor.launch.deaths import Deaths


@pytest.fixture
def sleepers() -> "Dict[int, subprocess.Popen[bytes]]":
    made = {rank: subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) for rank in range(3)}
    yield made
    for each in made.values():
        each.kill()
        each.wait()


def keep_rings(folder: Path, processes: "Dict[int, subprocess.Popen[bytes]]") -> None:
    for rank, process in processes.items():
        Ring(ring_path(folder, rank), {"rank": rank, "size": 3, "pid": process.pid, "node": os.uname().nodename})


def end(process: "subprocess.Popen[bytes]") -> None:
    process.send_signal(signal.SIGKILL)
    process.wait()


def ends_in(watched: Deaths, wanted: List[List[int]]) -> bool:
    until = time.monotonic() + 5
    while time.monotonic() < until and watched.order != wanted:
        time.sleep(0.01)
    return watched.order == wanted


def test_deaths_come_in_their_order(tmp_path: Path, sleepers) -> None:
    keep_rings(tmp_path, sleepers)
    with Deaths(tmp_path) as watched:
        time.sleep(0.5)
        end(sleepers[1])
        assert ends_in(watched, [[1]])
        end(sleepers[0])
        assert ends_in(watched, [[1], [0]])


def test_a_rank_that_was_gone_before_the_first_look_is_told(tmp_path: Path, sleepers) -> None:
    keep_rings(tmp_path, sleepers)
    end(sleepers[2])
    with Deaths(tmp_path) as watched:
        assert ends_in(watched, [[2]])
        end(sleepers[0])
        assert ends_in(watched, [[2], [0]])
