"""The stall autopsy's part in a rank: its ring of last events, and a watcher that looks whether the ranks still move.

The watcher is a daemon thread; MPI, NCCL and the CUDA runtime release the GIL while they wait. The lowest rank that is
alive reads all rings, which is all the communication that there is. Options: ``timeout_s``, ``on_stall`` (``report`` or
``abort``), ``launched`` (whether chainerdoctor started the ranks and watches their processes).
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple

from chainerdoctor.instrument.activity import Activity, spent_ticks
from chainerdoctor.instrument.calls import Call, calls_of
from chainerdoctor.instrument.recording import Recording
from chainerdoctor.instrument.ring import Ring, RingContent, read_ring, ring_path
from chainerdoctor.instrument.runner import Instrument
from chainerdoctor.instrument.whereabouts import FROZEN_S, whereabouts
from chainerdoctor.stalls import Stall, diagnose

#: A verdict that was given while the program ran; every rank looks for it.
VERDICT = "stall.json"
#: Processes of ranks in the order in which they were gone, as the parent saw it.
DEATHS = "deaths.json"
#: Has a rank write its stacks whose watcher does not run. A real-time signal that MPI and CUDA leave alone.
DUMP_SIGNAL = signal.SIGRTMAX - 5
_BEAT_S = 0.25
#: Given to all ranks to write their stacks before the program is ended.
_DUMP_S = 2.0
_NETWORK = ("nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "fuse", "9p", "afs", "pvfs", "orangefs")


def instrument(recording: Recording, options: Mapping[str, Any]) -> Instrument:
    """The instrument; options are those of this module's docstring."""
    return _Stall(recording, float(options.get("timeout_s", 60.0)), options.get("on_stall") == "abort")


def stacks_path(folder: Path, rank: int) -> Path:
    """Where a rank's Python stacks are after a stall."""
    return folder / f"rank-{rank:05d}.stacks"


class _Stall:
    def __init__(self, recording: Recording, timeout_s: float, abort: bool) -> None:
        self._recording = recording
        self._timeout_s = timeout_s
        self._abort = abort
        self._ring: Optional[Ring] = None
        self._stacks: Any = None

    def start(self) -> None:
        recording = self._recording
        if recording.size < 2 or self._timeout_s <= 0:
            return
        head = {"rank": recording.rank, "size": recording.size, "pid": os.getpid(), "node": socket.gethostname()}
        try:
            ring = self._ring = Ring(ring_path(recording.folder, recording.rank), {**head, "t": time.time()})
        except (OSError, ValueError) as error:
            recording.training.failed("stall", error)
            return
        training, calls = recording.training, calls_of(recording.training)

        def began(call: Call) -> None:
            ring.enter(call.content())

        def ended(call: Call) -> None:
            ring.leave()

        def initialised(path: str, iteration: int, place: str) -> None:
            ring.milestone({"what": "initialised", "path": path[:200], "it": iteration, "at": place[-100:]})

        calls.on_begin.append(began)
        calls.on_end.append(ended)
        calls.on_initialised.append(initialised)
        training.on_phase.append(lambda old, new: ring.phase(new, training.completed))
        training.on_iteration.append(lambda number: ring.phase(training.phase, number))
        recording.at_end.append(lambda content: ring.end(dict(content)))
        recording.at_end.append(lambda content: _remove_if_empty(stacks_path(recording.folder, recording.rank)))
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stacks = open(stacks_path(recording.folder, recording.rank), "a", encoding="utf-8")  # noqa: SIM115
            faulthandler.register(DUMP_SIGNAL, file=stacks, all_threads=True)
            self._stacks = stacks  # has to stay open
        watcher = Watcher(recording, ring, self._timeout_s, self._abort)
        threading.Thread(target=watcher.run, name="chainerdoctor-stall", daemon=True).start()

    def stop(self) -> None:
        """The ring is kept to the end of the process: what comes after the program's last line may hang, too."""


#: A ring, for how long its rank has been silent, whether its process is gone, for how long it has given no heartbeat.
_Seen = Tuple[RingContent, float, bool, float]


class Watcher:
    """One rank's watching thread."""

    def __init__(self, recording: Recording, ring: Ring, timeout_s: float, abort: bool) -> None:
        self._folder = recording.folder
        self._rank, self._size = recording.rank, recording.size
        self._training, self._spool = recording.training, recording.spool
        self._ring = ring
        self._timeout_s = timeout_s
        self._abort = abort
        self._pid = os.getpid()
        self._node = socket.gethostname()
        self._told = ""
        self._verdict_at: Optional[int] = None
        self._gone: List[int] = []
        #: Number and time of the last new heartbeat of other ranks, and their CPU time then.
        self._beats: Dict[int, Tuple[int, float, int, float]] = {}
        self._shared = _is_network(recording.folder)

    def run(self) -> None:
        """Until the process ends."""
        try:
            self._run()
        except Exception as error:  # the autopsy is over, the training goes on
            self._training.failed("stall", error)

    def _run(self) -> None:
        activity = Activity()
        every = max(1, int(min(self._timeout_s / 4, 2.0) / _BEAT_S))
        number = 0
        while os.getpid() == self._pid:
            number += 1
            seen = activity.look()
            self._ring.beat({"mono": time.monotonic_ns(), "t": time.time(), **seen, "gone": self._gone})
            if self._shared and number % 4 == 0:
                self._ring.sync()
            self._obey()
            # A rank that computes proves that there is no stall; the others need not be asked.
            if number % every == 0 and not (seen["doing"] == "running" and not self._ring.state()[0]):
                self._look_around()
            time.sleep(_BEAT_S)

    # What others found.

    def _obey(self) -> None:
        path = self._folder / VERDICT
        try:
            changed = os.stat(path).st_mtime_ns
        except OSError:
            return
        if changed == self._verdict_at:
            return
        self._verdict_at = changed
        self._dump_stacks()
        try:
            verdict = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return
        if verdict.get("aborted") and verdict.get("judge") != self._rank:
            time.sleep(_DUMP_S)
            self._leave()

    def _dump_stacks(self) -> None:
        with contextlib.suppress(OSError), open(stacks_path(self._folder, self._rank), "a", encoding="utf-8") as file:
            file.write(f"rank {self._rank}, {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
            file.flush()
            faulthandler.dump_traceback(file, all_threads=True)
            file.write("\n")

    def _leave(self) -> None:
        with contextlib.suppress(Exception):
            self._spool.flush()
        os._exit(1)

    # What this rank finds.

    def _look_around(self) -> None:
        rings = self._read()
        ranks = {rank: whereabouts(*each) for rank, each in rings.items()}
        awake = [
            rank for rank, (ring, _, gone, quiet_s) in rings.items() if not (gone or ring.end or quiet_s > FROZEN_S)
        ]
        if not awake or min(awake) != self._rank:
            return
        stall = diagnose(ranks, self._size, self._timeout_s)
        if stall is None:
            if self._told:
                self._say("the ranks went on")
                self._told = ""
                with contextlib.suppress(OSError):
                    (self._folder / VERDICT).unlink()
            return
        if stall.kind + str(stall.ranks) != self._told:
            self._told = stall.kind + str(stall.ranks)
            self._tell(stall, rings)

    def _read(self) -> Dict[int, _Seen]:
        made: Dict[int, _Seen] = {}
        for rank in range(self._size):
            try:
                content = read_ring(ring_path(self._folder, rank))
            except (OSError, ValueError):
                continue
            silent_s, gone, quiet_s = (0.0, False, 0.0) if rank == self._rank else self._silence(rank, content)
            if gone and content.end is None and rank not in self._gone:
                self._gone.append(rank)
            made[rank] = (content, silent_s, gone, quiet_s)
        return made

    def _silence(self, rank: int, content: RingContent) -> Tuple[float, bool, float]:
        """For how long another rank gave no heartbeat and used no CPU, whether its process is gone, and for how long it
        gave no heartbeat at all."""
        now = time.monotonic()
        number, idle_from, ticks, heard = self._beats.get(rank, (-1, now, -1, now))
        near = content.head.get("node") == self._node
        spent = spent_ticks(int(content.head.get("pid", -1))) if near else None
        if content.beat_number != number:
            heard = idle_from = now
        elif spent is not None and spent > ticks + 1:
            idle_from = now  # holds the GIL and computes
        else:
            spent = None if spent is None else ticks
        self._beats[rank] = (content.beat_number, idle_from, -1 if spent is None else spent, heard)
        patience_s = FROZEN_S if near else FROZEN_S * 4
        silent_s = now - idle_from if now - idle_from > patience_s else 0.0
        return silent_s, near and spent is None, now - heard if now - heard > patience_s / 2 else 0.0

    def _tell(self, stall: Stall, rings: Mapping[int, _Seen]) -> None:
        verdict = {
            "kind": stall.kind,
            "sentence": stall.sentence,
            "ranks": list(stall.ranks),
            "aborted": self._abort,
            "judge": self._rank,
            "t": time.time(),
        }
        temporary = self._folder / f"{VERDICT}.{self._rank}.tmp"
        with contextlib.suppress(OSError):
            temporary.write_text(json.dumps(verdict), encoding="utf-8")
            os.replace(temporary, self._folder / VERDICT)
        self._dump_stacks()
        self._say(f"stalled: {stall.sentence}")
        alive = {rank: ring for rank, (ring, _, gone, _) in rings.items() if not gone}
        for ring, _, gone, quiet_s in rings.values():
            # Its watcher does not run; the handler of this signal needs no GIL.
            if not gone and quiet_s and ring.head.get("node") == self._node:
                with contextlib.suppress(OSError, ValueError):
                    os.kill(int(ring.head.get("pid", 0)), DUMP_SIGNAL)
        until = time.monotonic() + _DUMP_S
        while time.monotonic() < until and not all(_has_stacks(self._folder, rank) for rank in alive):
            time.sleep(0.05)
        self._say(f"stacks of all ranks are in {self._folder} (rank-*.stacks)")
        if self._abort:
            self._say("ending the program (--on-stall abort)")
            self._leave()

    def _say(self, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(2, f"chainerdoctor: {text}\n".encode("utf-8", "replace"))


def _has_stacks(folder: Path, rank: int) -> bool:
    try:
        return os.stat(stacks_path(folder, rank)).st_size > 0
    except OSError:
        return False


def _remove_if_empty(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()


def _is_network(folder: Path) -> bool:
    """Whether a folder is on a file system where other nodes see a mapped file only after a sync."""
    best, kind = "", ""
    with contextlib.suppress(OSError), open("/proc/self/mounts", encoding="utf-8", errors="replace") as mounts:
        for line in mounts:
            words = line.split()
            point = words[1].rstrip("/") + "/"
            if len(words) > 2 and f"{folder}/".startswith(point) and len(point) >= len(best):
                best, kind = point, words[2]
    return kind.startswith(_NETWORK)
