"""``mpiexec -n 8 chainerdoctor check-cluster``: this process is itself a rank; rank 0 reports for all.

Nobody reads the ranks' standard output here, so shards travel two other ways at once: through files in a folder of
this node's temporary directory (works whatever MPI does, for ranks of one node), and by MPI point-to-point messages
from a thread (works between nodes). Rank 0 takes what comes first and reports at the deadline all the same.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Deque, Mapping, Optional

from chainerdoctor.adapters import mpi
from chainerdoctor.facts import ERROR, TIMEOUT, Fact, Missing
from chainerdoctor.facts.mpi import LaunchedAs, LauncherOutcome
from chainerdoctor.host import LiveHost
from chainerdoctor.launch.agent import Sender, look
from chainerdoctor.launch.collect import Gathering
from chainerdoctor.launch.identity import identity
from chainerdoctor.snapshot import Sighting, Snapshot, sighting_to_json

#: Variables that are the same on all ranks of a job and differ between jobs.
_JOB_VARIABLES = ("PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri", "SLURM_JOB_ID", "SLURM_STEP_ID")


@dataclass(frozen=True)
class Joined:
    """``snapshot`` is ``None`` on every rank but the one that reports."""

    snapshot: Optional[Snapshot]


def gather_as_rank(timeout_s: float, command: str) -> Optional[Joined]:
    """Take part as one of a launcher's ranks; ``None`` if no launcher started this process, or started it alone."""
    told = identity(os.environ)
    if told is None or told.size < 2:
        return None
    began_at_s, began_s = time.time(), time.monotonic()
    until_s = began_s + timeout_s
    sender = Sender(told.rank, lambda lines: None)
    look(LiveHost(), told, sender.send, waves=(False,))
    exchange = _Exchange(told, until_s)
    exchange.start()
    # What MPI says of itself is part of the report; it has until shortly before the end to say it.
    exchange.ready.wait(max(0.0, until_s - time.monotonic() - 1.0))
    seen = Sighting(os.uname().nodename, told.rank, "mpi_world", time.time(), time.monotonic() - began_s, exchange.fact)
    sender.send({"sightings": [sighting_to_json(seen)]})
    sender.send({"final": True})
    shard = b"".join(sender.sent)
    folder = _meeting_folder(os.environ)
    if told.rank != 0:
        _write_whole(folder / f"rank-{told.rank}", shard)
        exchange.post(shard)
        return Joined(None)
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
    with contextlib.suppress(OSError):  # a rank that comes late may write there once more
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    exchange.end()
    took_s = time.monotonic() - began_s
    return Joined(gathering.snapshot(LauncherOutcome(f"joined {told.launcher}", 0, told.size, took_s, ""), command))


class _Exchange(threading.Thread):
    """MPI in a thread of its own: MPI_Init, messages and MPI_Finalize may hang, and the report must not."""

    def __init__(self, told: LaunchedAs, until_s: float) -> None:
        super().__init__(daemon=True)
        self._told = told
        self._until_s = until_s
        self._outbox: Deque[bytes] = deque()
        self._posted = threading.Event()
        self._over = threading.Event()
        #: Set once ``fact`` is what MPI said.
        self.ready = threading.Event()
        self.fact: Fact = Missing("mpi_world", TIMEOUT, "MPI_Init did not return", ("MpiWorld",))
        #: Shards that came by MPI (rank 0).
        self.arrived: Deque[bytes] = deque()

    def post(self, shard: bytes) -> None:
        """Send this rank's shard to rank 0, and wait until it is gone or the time is up."""
        self._outbox.append(shard)
        self._posted.set()
        self.join(max(0.0, self._until_s - time.monotonic()))

    def end(self) -> None:
        """Rank 0 has what it wants. Finalising waits for ranks that may be gone, so it gets a few seconds only."""
        self._over.set()
        self.join(3.0)

    def run(self) -> None:
        """Initialise, say what MPI says, exchange, finalise."""
        try:
            world, finalise = mpi.join_world()
        except Exception as error:
            detail = f"{type(error).__name__}: {' '.join(str(error).split())}"
            self.fact = Missing("mpi_world", ERROR, detail, ("MpiWorld",))
            self.ready.set()
            return
        self.fact = world
        self.ready.set()
        # Where MPI's world is not the launcher's there is nobody to talk to; files have to do.
        if world.size == self._told.size:
            if self._told.rank == 0:
                mpi.receive_shards(self.arrived.append, self._stopped)
            elif self._posted.wait(max(0.0, self._until_s - time.monotonic())):
                mpi.send_shard(self._outbox.popleft(), self._stopped)
        finalise()

    def _stopped(self) -> bool:
        return self._over.is_set() or time.monotonic() > self._until_s


def _meeting_folder(environ: Mapping[str, str]) -> Path:
    """A folder that only this user's ranks of this job on this node know.

    Raises:
        PermissionError: somebody else made it first.
    """
    words = [f"{name}={environ[name]}" for name in _JOB_VARIABLES if name in environ] or [f"parent={os.getppid()}"]
    key = hashlib.sha256("\n".join(words).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"chainerdoctor-{os.getuid()}-{key}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if found.st_uid != os.getuid() or not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077:
        raise PermissionError(f"{folder} exists and is not this user's own")
    return folder


def _write_whole(path: Path, content: bytes) -> None:
    temporary = path.with_suffix(".tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    with contextlib.suppress(FileNotFoundError):  # rank 0 has reported already and cleared the folder
        temporary.replace(path)
