"""What this process's training thread is doing, seen from another thread: running, sleeping, blocked, or in MPI."""

from __future__ import annotations

import contextlib
import linecache
import os
import re
import sys
import threading
import time
from typing import Any, Dict, List, Optional

from chainerdoctor.instrument.places import is_library, line_of, place_of

#: Shares of one core below which a process does nothing: its own watcher needs less.
_IDLE_SHARE = 0.01
#: Bytes read or written in a second above which a process does something: a data loader on a slow file system.
_IDLE_BYTES_S = 64
#: MPI and NCCL calls on a line of ChainerMN's or of the program.
_MPI = re.compile(
    r"(?:mpi_comm|nccl_comm|comm|COMM_WORLD|MPI|request|req)\w*\.(?P<name>[Bb]arrier|I?[Bb]cast|I?[Aa]ll[Rr]educe|"
    r"[Rr]educe\w*|[Aa]lltoall\w*|[Aa]llgather\w*|[Gg]ather\w*|[Ss]catter\w*|[Ss]send|[Ss]endrecv|[Ss]end|[Rr]ecv|"
    r"[Pp]robe|Wait\w*|Split|Dup|wait\w*)\("
)
_SLEEP = re.compile(r"\bsleep\(")


class Activity:
    """Samples; each look costs about 50 microseconds. For one watching thread only."""

    def __init__(self) -> None:
        self._main = threading.main_thread()
        self._watcher = threading.get_ident()
        self._at = self._active_at = time.monotonic()
        self._cpu_s: Dict[Any, float] = {}
        self._bytes = 0

    def look(self) -> Dict[str, Any]:
        """``idle`` (seconds without CPU or input), ``doing``, ``place`` and ``line``."""
        now = time.monotonic()
        elapsed = max(now - self._at, 1e-3)
        self._at = now
        used, read = self._used_s(), self._input_bytes()
        active = used > _IDLE_SHARE * elapsed or read > _IDLE_BYTES_S * elapsed
        if not active and self._children_s() > _IDLE_SHARE * elapsed:
            active = True
        if active:
            self._active_at = now
        frame = sys._current_frames().get(self._main.ident or 0)
        line, in_library, place = "", True, ""
        if frame is not None:
            in_library = is_library(frame.f_code.co_filename)
            line = linecache.getline(frame.f_code.co_filename, line_of(frame)).strip()
            mpi_file = "chainermn" in frame.f_code.co_filename
            in_library = in_library and not mpi_file
            place = place_of(frame)[0]
        return {
            "idle": round(now - self._active_at, 3),
            "doing": _doing(line, in_library, active),
            "place": place[-100:],
            "line": line[:120],
        }

    def _used_s(self) -> float:
        """CPU seconds since the last look of the threads that Python knows; libraries' own threads may only spin."""
        now: Dict[Any, float] = {}
        for thread in threading.enumerate():
            if thread.native_id is None or thread.ident == self._watcher:
                continue
            with contextlib.suppress(OSError, ValueError, IndexError):
                now[thread.native_id] = _thread_s(thread.native_id)
        return self._grown(now)

    def _children_s(self) -> float:
        """The same of the processes below this one: a MultiprocessIterator's workers."""
        ticks = os.sysconf("SC_CLK_TCK")
        return self._grown({("pid", pid): spent / ticks for pid, spent in _descendants(os.getpid()).items()})

    def _grown(self, now: Dict[Any, float]) -> float:
        grown = sum(max(0.0, value - self._cpu_s.get(key, value)) for key, value in now.items())
        self._cpu_s.update(now)
        return grown

    def _input_bytes(self) -> int:
        total = 0
        with contextlib.suppress(OSError, ValueError), open(f"/proc/self/task/{self._main.native_id}/io", "rb") as file:
            for line in file:
                if line.startswith((b"rchar", b"wchar")):
                    total += int(line.split()[1])
        grown, self._bytes = total - self._bytes, total
        return grown


def _thread_s(thread: int) -> float:
    """CPU seconds of a thread of this process.

    By /proc: what a thread's CPU clock says is undefined once the thread has ended. schedstat counts nanoseconds (kernel
    documentation, scheduler/sched-stats); where there is none, stat counts ticks.
    """
    folder = f"/proc/self/task/{thread}"
    try:
        with open(f"{folder}/schedstat", "rb") as file:
            return int(file.read().split()[0]) / 1e9
    except FileNotFoundError:
        with open(f"{folder}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        return float(int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _doing(line: str, in_library: bool, active: bool) -> str:
    found = None if in_library else _MPI.search(line)
    if found is not None:
        return f"MPI {found['name']}"
    if active:
        return "running"
    return "sleeping" if _SLEEP.search(line) and not in_library else "blocked"


def _descendants(pid: int) -> Dict[int, int]:
    """Clock ticks of each living process below this one."""
    found: Dict[int, int] = {}
    rest: List[int] = _children(pid)
    while rest and len(found) < 256:
        each = rest.pop()
        if each not in found:
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{each}/stat", "rb") as file:
                    words = file.read().rpartition(b")")[2].split()
                found[each] = int(words[11]) + int(words[12])
            rest += _children(each)
    return found


def _children(pid: int) -> List[int]:
    made: List[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                made += map(int, file.read().split())
    return made


def spent_ticks(pid: int) -> Optional[int]:
    """CPU of another process in clock ticks; ``None`` for one that is gone (a zombie is)."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
        return None if words[0] in (b"Z", b"X") else int(words[11]) + int(words[12])
    except (OSError, ValueError, IndexError):
        return None
