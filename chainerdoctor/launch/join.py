"""``mpiexec -n 8 chainerdoctor check-cluster``: this process is itself a rank; rank 0 reports for all.

Nobody reads the ranks' standard output here, so shards travel two other ways at once: through files in a folder of
this node's temporary directory (works whatever MPI does, for ranks of one node), and by MPI point-to-point messages
of a child process (works between nodes). Rank 0 takes what comes first and reports at the deadline all the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import stat
import struct
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Deque, List, Mapping, Optional, Tuple

from chainerdoctor.adapters import mpi
from chainerdoctor.codec import fact_from_json, fact_to_json
from chainerdoctor.facts import ABSENT, CRASHED, TIMEOUT, Fact, Missing
from chainerdoctor.facts.mpi import LaunchedAs, LauncherOutcome, MpiWorld
from chainerdoctor.host import LiveHost
from chainerdoctor.launch.agent import Sender, look
from chainerdoctor.launch.collect import Gathering
from chainerdoctor.launch.identity import identity
from chainerdoctor.launch.shelter import end_through_c
from chainerdoctor.launch.witness import end_at
from chainerdoctor.probes import LOOK, WORK
from chainerdoctor.probes.workloads import count_gpus, why_no_nccl
from chainerdoctor.snapshot import Sighting, Snapshot, sighting_to_json
from chainerdoctor.workloads.collectives import BETWEEN_RANKS, between_ranks

#: Variables that are the same on all ranks of a job and differ between jobs.
_JOB_VARIABLES = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri", "SLURM_JOB_ID", "SLURM_STEP_ID")

#: First byte of the child's records.
_FACT, _NO_MORE_FACTS, _SHARD = b"f", b"e", b"s"


@dataclass(frozen=True)
class Joined:
    """``snapshot`` is ``None`` on every rank but the one that reports."""

    snapshot: Optional[Snapshot]


def gather_as_rank(timeout_s: float, command: str, active: bool = True) -> Optional[Joined]:
    """Take part as one of a launcher's ranks; ``None`` if no launcher started this process, or started it alone."""
    told = identity(os.environ)
    if told is None or told.size < 2:
        return None
    began_at_s, began_s = time.time(), time.monotonic()
    until_s = began_s + timeout_s
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # as in witness.py
    sender = Sender(told.rank, lambda lines: None)
    look(LiveHost(), told, sender.send, until_s - min(3.0, timeout_s / 4), (LOOK, WORK), active)
    exchange = _Exchange(told, until_s, active)
    exchange.start()
    # What MPI says of itself is part of the report; it has until shortly before the end to say it.
    exchange.ready.wait(max(0.0, until_s - time.monotonic() - min(2.0, timeout_s / 4)))
    took_s = time.monotonic() - began_s
    seen = [Sighting(os.uname().nodename, told.rank, "mpi_world", time.time(), took_s, f) for f in exchange.facts()]
    sender.send({"sightings": [sighting_to_json(each) for each in seen]})
    sender.send({"final": True})
    shard = b"".join(sender.sent)
    folder = _meeting_folder(os.environ)
    if told.rank != 0:
        own = folder / f"rank-{told.rank}"
        _write_whole(own, shard)
        exchange.post(shard)
        exchange.end(until_s - time.monotonic())
        # Where rank 0 is on another node it will never see the file; where MPI failed, the file is all it will get.
        while not exchange.arrived and own.exists() and time.monotonic() < until_s:
            time.sleep(0.02)
        _clear(folder, own)
        return Joined(None)
    exchange.post(b"")
    gathering = Gathering(told.size, began_at_s)
    gathering.feed(shard, time.time())
    taken = set()
    while gathering.complete < told.size and time.monotonic() < until_s:
        for path in sorted(folder.glob("rank-*")):
            if path.name not in taken and not path.name.endswith(".tmp"):
                taken.add(path.name)
                gathering.feed(path.read_bytes(), time.time())
        while exchange.arrived:
            gathering.feed(exchange.arrived.popleft(), time.time())
        time.sleep(0.01)
    _clear(folder, *_left_in(folder))
    exchange.end(min(3.0, until_s + 3.0 - time.monotonic()))
    took_s = time.monotonic() - began_s
    return Joined(gathering.snapshot(LauncherOutcome(f"joined {told.launcher}", 0, told.size, took_s, ""), command))


class _Exchange(threading.Thread):
    """MPI in a forked child: it may crash, abort its process or hang in MPI_Init, and the report must not.

    The child gives records (length, bytes) through a pipe: first what MPI says of itself, then, on rank 0, the shards
    of the others. This thread reads them. The child gets this rank's own shard through another pipe.
    """

    def __init__(self, told: LaunchedAs, until_s: float, active: bool) -> None:
        super().__init__(daemon=True)
        self._told = told
        self._until_s = until_s
        self._records, records_write = os.pipe()
        shard_read, self._shard_write = os.pipe()
        # Before the fork and MPI_Init: processes are not to be started after it.
        known = (count_gpus(), why_no_nccl(LiveHost())) if active else (0, "")
        self._pid = os.fork()
        if self._pid == 0:
            try:
                os.close(self._records)
                os.close(self._shard_write)
                end_at(until_s + 5.0)
                _exchange_by_mpi(told, until_s, shard_read, records_write, active, known)
                end_through_c()
            finally:
                os._exit(0)
        os.close(records_write)
        os.close(shard_read)
        #: Set once MPI and the work between the ranks have said all that they will.
        self.ready = threading.Event()
        self._facts: List[Fact] = []
        self._kinds: Tuple[str, ...] = tuple(kind.__name__ for kind in (MpiWorld, *(BETWEEN_RANKS if active else ())))
        self._ended = False
        #: Shards that came by MPI (rank 0), or one word for this rank's own that has gone.
        self.arrived: Deque[bytes] = deque()

    def run(self) -> None:
        """Read the child's records until it ends."""
        with os.fdopen(self._records, "rb") as records:
            for record in iter(lambda: _read_record(records), None):
                if record[:1] == _FACT:
                    self._facts.append(fact_from_json(json.loads(record[1:])))
                elif record[:1] == _NO_MORE_FACTS:
                    self._ended = True
                    self.ready.set()
                else:
                    self.arrived.append(record[1:])
        self.ready.set()

    def facts(self) -> Tuple[Fact, ...]:
        """What was said so far, and what is missing of it if the child hangs or has died."""
        told = tuple(self._facts)
        if self._ended:
            return told
        unseen = tuple(kind for kind in self._kinds if kind not in {fact.kind for fact in told})
        reason, detail = (
            (CRASHED, "MPI_Init ended the process") if self.ready.is_set() else (TIMEOUT, "MPI_Init did not return")
        )
        if told:
            detail = "the process ended" if self.ready.is_set() else "the work between the ranks did not end"
        return (*told, Missing("mpi_world", reason, detail, unseen))

    def post(self, shard: bytes) -> None:
        """Give the child this rank's shard to send."""
        with contextlib.suppress(BrokenPipeError), os.fdopen(self._shard_write, "wb") as pipe:
            pipe.write(shard)

    def end(self, patience_s: float) -> None:
        """Wait for the child (finalising waits for ranks that may be gone), then end it."""
        until_s = time.monotonic() + max(0.0, patience_s)
        self.join(max(0.0, patience_s))
        # Its last act, after the pipe is closed, is to tell the launcher that it has finalised.
        while os.waitpid(self._pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > until_s:
                break
            time.sleep(0.002)
        else:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)


def _exchange_by_mpi(
    told: LaunchedAs, until_s: float, shard_read: int, records_write: int, active: bool, known: Tuple[int, str]
) -> None:
    """The child's part. Its standard output goes nowhere: the report must stay alone on rank 0's."""
    null = os.open(os.devnull, os.O_RDWR)
    for handle in (0, 1, 2):
        os.dup2(null, handle)
    with os.fdopen(records_write, "wb", buffering=0) as records:
        try:
            world, finalise = mpi.join_world()
        except Exception as error:
            detail = f"{type(error).__name__}: {' '.join(str(error).split())}"
            _write_fact(records, Missing("mpi_world", ABSENT, detail, (MpiWorld.__name__,)))
            _write_record(records, _NO_MORE_FACTS)
            return
        _write_fact(records, world)
        if active and world.size == told.size:
            for fact in between_ranks(told.local_rank, *known):
                _write_fact(records, fact)
        _write_record(records, _NO_MORE_FACTS)

        def stopped() -> bool:
            return time.monotonic() > until_s

        # Where MPI's world is not the launcher's there is nobody to talk to; files have to do.
        if world.size == told.size:
            if told.rank == 0:
                mpi.receive_shards(lambda shard: _write_record(records, _SHARD + shard), stopped)
            else:
                with os.fdopen(shard_read, "rb") as pipe:
                    if mpi.send_shard(pipe.read(), stopped):
                        _write_record(records, _SHARD)
        finalise()


def _write_fact(stream: IO[bytes], fact: Fact) -> None:
    _write_record(stream, _FACT + json.dumps(fact_to_json(fact)).encode())


def _write_record(stream: IO[bytes], content: bytes) -> None:
    rest = memoryview(struct.pack("<Q", len(content)) + content)
    while rest:
        rest = rest[stream.write(rest) :]


def _read_record(stream: IO[bytes]) -> Optional[bytes]:
    head = stream.read(8)
    if len(head) < 8:
        return None
    return stream.read(struct.unpack("<Q", head)[0])


def job_key(environ: Mapping[str, str]) -> str:
    """A word that the ranks of one job on one node share, and other jobs do not."""
    words = [f"{name}={environ[name]}" for name in _JOB_VARIABLES if name in environ] or [f"parent={os.getppid()}"]
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]


def _meeting_folder(environ: Mapping[str, str]) -> Path:
    """A folder that only this user's ranks of this job on this node know.

    Raises:
        PermissionError: somebody else made it first.
    """
    folder = Path(tempfile.gettempdir()) / f"chainerdoctor-{os.getuid()}-{job_key(environ)}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
        raise PermissionError(f"{folder} exists and is not this user's own")
    return folder


def _left_in(folder: Path) -> Tuple[Path, ...]:
    """What is still in the folder; nothing where the last rank to leave has removed it already."""
    try:
        return tuple(folder.iterdir())
    except FileNotFoundError:
        return ()


def _clear(folder: Path, *paths: Path) -> None:
    """Remove files and, once it is empty, the folder; another rank may be faster or still need it."""
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
    with contextlib.suppress(OSError):
        folder.rmdir()


def _write_whole(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    with contextlib.suppress(FileNotFoundError):  # rank 0 has reported already and cleared the folder
        temporary.replace(path)
