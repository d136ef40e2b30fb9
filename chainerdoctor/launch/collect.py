"""Start the agents, gather their shards to a deadline, and make one snapshot. Silence is a fact, too."""

from __future__ import annotations

import contextlib
import os
import re
import selectors
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from chainerdoctor import __version__
from chainerdoctor.codec import CodecError
from chainerdoctor.facts import SILENT, Fact, Missing
from chainerdoctor.facts.host import ClockOffset
from chainerdoctor.facts.mpi import LauncherOutcome, RankOutcome
from chainerdoctor.launch.frames import FrameReader, Message
from chainerdoctor.probes import all_probes
from chainerdoctor.snapshot import Sighting, Snapshot, sighting_from_json

Progress = Callable[[int, int], None]

#: Seconds that a launcher gets to end by itself once every rank has handed in everything.
_GRACE_S = 3.0


class LaunchError(Exception):
    """The ranks could not be started. The text is one line for the user."""


@dataclass(frozen=True)
class Launch:
    """A command that starts ``ranks`` agents, or several commands that start one each (no MPI)."""

    launcher: str
    ranks: int
    commands: Tuple[Tuple[str, ...], ...]
    environments: Tuple[Mapping[str, str], ...]
    hosts: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Obituary:
    """What a launcher says of the rank that it lost first."""

    rank: int
    how: str


#: Open MPI 4, then 5. MPICH's notice is not read: where all ranks end at once it names any of them.
_OPEN_MPI = re.compile(r"process rank (\d+) with PID \d+ on node \S+ (exited on signal \d+[^.\n]*)")
_PRTE = re.compile(r"Process name: \[\S+,(\d+)\]\s*\n\s*(Exit code:\s+\d+)")


def obituary_in(text: str) -> Optional[Obituary]:
    """Find the launcher's notice of a rank's death in what it printed."""
    found = _OPEN_MPI.search(text)
    if found:
        return Obituary(int(found.group(1)), f"mpiexec says: {found.group(2)}")
    found = _PRTE.search(text)
    if found:
        return Obituary(int(found.group(1)), f"mpiexec says: {' '.join(found.group(2).lower().split())}")
    return None


@dataclass
class _Shard:
    """What one rank has handed in so far."""

    node: str = ""
    boot: str = ""
    died: str = ""
    final: bool = False
    sightings: List[Sighting[Fact]] = field(default_factory=list)
    malformed: int = 0
    clock_low_s: float = float("-inf")
    clock_high_s: float = float("inf")


class Gathering:
    """Puts messages together into shards, and shards into a snapshot."""

    def __init__(self, ranks: int, began_at_s: float) -> None:
        self._ranks = ranks
        self._began_at_s = began_at_s
        self._reader = FrameReader()
        self._shards: Dict[int, _Shard] = {}
        #: What rank 0 said last of its progress, (done, of how many).
        self.progress: Optional[Tuple[int, int]] = None

    def feed(self, data: bytes, now_s: float) -> None:
        """Take what arrived; ``now_s`` is seconds since the epoch on this machine."""
        for message in self._reader.feed(data):
            if message.rank < self._ranks and isinstance(message.content, dict):
                self._take(message, now_s)

    def _take(self, message: Message, now_s: float) -> None:
        shard = self._shards.setdefault(message.rank, _Shard())
        content = message.content
        sent_at = content.get("t")
        if isinstance(sent_at, (int, float)) and not isinstance(sent_at, bool):
            # The message was sent after we began and before now, so the sender's clock minus ours lies between these.
            shard.clock_low_s = max(shard.clock_low_s, sent_at - now_s)
            shard.clock_high_s = min(shard.clock_high_s, sent_at - self._began_at_s)
        hello = content.get("hello")
        if isinstance(hello, dict):
            shard.node, shard.boot = str(hello.get("node", "")), str(hello.get("boot", ""))
        for raw in content.get("sightings", ()):
            try:
                shard.sightings.append(sighting_from_json(raw))
            except CodecError:
                shard.malformed += 1
        told = content.get("progress")
        if isinstance(told, list) and len(told) == 2 and all(isinstance(each, int) for each in told):
            self.progress = (told[0], told[1])
        shard.final = shard.final or content.get("final") is True
        if isinstance(content.get("died"), str):
            shard.died = content["died"]

    @property
    def complete(self) -> int:
        """How many ranks have handed in everything that they ever will."""
        return sum(shard.final or bool(shard.died) for shard in self._shards.values())

    @property
    def noise(self) -> str:
        """The last of what was printed between the frames."""
        return self._reader.noise.decode("utf-8", "replace")

    def sightings(self, obituary: Optional[Obituary] = None) -> Iterator[Sighting[Fact]]:
        """Everything gathered, rank by rank, with nodes named apart and the outcome of each rank."""
        labels = self._labels()
        incomplete = self._reader.incomplete()
        clocks: Dict[str, Tuple[float, float]] = {}
        for rank in range(self._ranks):
            shard = self._shards.get(rank)
            label = labels.get((shard.node, shard.boot), "") if shard else ""
            if shard is not None:
                for seen in shard.sightings:
                    yield Sighting(label, seen.rank, seen.probe, seen.at_s, seen.took_s, seen.fact)
                low, high = clocks.get(label, (float("-inf"), float("inf")))
                clocks[label] = (max(low, shard.clock_low_s), min(high, shard.clock_high_s))
            outcome = _outcome(rank, shard, incomplete.get(rank))
            if outcome.state not in ("complete", "damaged", "died") and obituary is not None:
                # Launchers end all ranks when one dies: that one is the culprit, the others are its victims.
                own = rank == obituary.rank
                detail = obituary.how if own else f"ended by the launcher because rank {obituary.rank} died"
                outcome = RankOutcome(rank, "died" if own else "cut", detail)
            yield Sighting(label, rank, "launch", self._began_at_s, 0.0, outcome)
            if outcome.state != "complete":
                # What it would have seen is missing: a rule that nobody else gave facts to could not judge.
                unseen = Missing("launch", SILENT, f"rank {rank}: {outcome.detail}", _all_kinds())
                yield Sighting(label, rank, "launch", self._began_at_s, 0.0, unseen)
        for label, (low, high) in clocks.items():
            if label and low <= high:
                yield Sighting(label, None, "launch", self._began_at_s, 0.0, ClockOffset(low, high))

    def snapshot(self, outcome: LauncherOutcome, command: str, obituary: Optional[Obituary] = None) -> Snapshot:
        """Everything gathered, and how the launcher ended, as one snapshot."""
        last = Sighting("", None, "launch", self._began_at_s, outcome.took_s, outcome)
        taken_at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self._began_at_s))
        return Snapshot([*self.sightings(obituary), last], command=command, taken_at=taken_at, tool=__version__)

    def _labels(self) -> Dict[Tuple[str, str], str]:
        """Host names, made unique where two machines (by boot id) have the same one."""
        boots: Dict[str, List[str]] = {}
        for rank in sorted(self._shards):
            shard = self._shards[rank]
            known = boots.setdefault(shard.node, [])
            if shard.boot not in known:
                known.append(shard.boot)
        return {
            (node, boot): node if number == 0 else f"{node}#{number + 1}"
            for node, known in boots.items()
            for number, boot in enumerate(known)
        }


def _all_kinds() -> Tuple[str, ...]:
    return tuple(sorted({kind.kind for probe in all_probes() for kind in probe.yields}))


def _outcome(rank: int, shard: Optional[_Shard], pieces: Optional[Tuple[int, int]]) -> RankOutcome:
    if shard is not None and shard.final and not shard.malformed:
        return RankOutcome(rank, "complete", "")
    if shard is not None and shard.died:
        return RankOutcome(rank, "died", shard.died)
    if shard is not None and shard.malformed:
        return RankOutcome(rank, "damaged", f"{shard.malformed} of its facts could not be read")
    if pieces is not None:
        return RankOutcome(rank, "damaged", f"{pieces[0]} of {pieces[1]} pieces of a message arrived")
    if shard is None:
        return RankOutcome(rank, "silent", "not one message arrived")
    last = max(shard.sightings, key=lambda seen: seen.at_s + seen.took_s, default=None)
    heard = f"last heard from the probe {last.probe}" if last else "it only said that it had started"
    return RankOutcome(rank, "partial", heard)


def gather(launch: Launch, timeout_s: float, command: str, progress: Optional[Progress] = None) -> Snapshot:
    """Start the agents and wait for their shards, at most ``timeout_s`` seconds and a little for ending them.

    Raises:
        LaunchError: a program of the launcher cannot be started at all.
    """
    began_at_s, began_s = time.time(), time.monotonic()
    gathering = Gathering(launch.ranks, began_at_s)
    running: List[subprocess.Popen[bytes]] = []
    words = bytearray()
    try:
        for line, environ in zip(launch.commands, launch.environments):
            running.append(_start(line, environ))
        _pump(running, gathering, words, launch.ranks, began_s + timeout_s, progress)
    finally:
        statuses = [_end(process) for process in running]
    lost = next((status for status in statuses if status not in (0, None)), None)
    outcome = LauncherOutcome(
        launcher=launch.launcher,
        exit_status=lost if lost is not None else (0 if None not in statuses else None),
        wanted_ranks=launch.ranks,
        took_s=time.monotonic() - began_s,
        last_words=_last_words(
            gathering.noise, bytes(words).decode("utf-8", "replace"), _unknown_names(launch, gathering)
        ),
    )
    said = gathering.noise + bytes(words).decode("utf-8", "replace")
    return gathering.snapshot(outcome, command, obituary_in(said))


def _start(command: Tuple[str, ...], environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
            start_new_session=True,
        )
    except OSError as error:
        raise LaunchError(f"cannot start {command[0]}: {error.strerror or error}") from None


def _pump(
    running: List[subprocess.Popen[bytes]],
    gathering: Gathering,
    words: bytearray,
    ranks: int,
    until_s: float,
    progress: Optional[Progress],
) -> None:
    """Read until every stream has ended, the deadline has come, or all ranks are complete and had time to leave."""
    with selectors.DefaultSelector() as selector:
        for process in running:
            for stream in (process.stdout, process.stderr):
                assert stream is not None
                os.set_blocking(stream.fileno(), False)
                selector.register(stream, selectors.EVENT_READ, stream is process.stdout)
        shown = (-1, 0)
        while selector.get_map():
            now_s = time.monotonic()
            if now_s >= until_s:
                return
            for key, _ in selector.select(min(until_s - now_s, 0.5)):
                data = _read(key.fd)
                if data is None:
                    continue
                if not data:
                    selector.unregister(key.fileobj)
                elif key.data:
                    gathering.feed(data, time.time())
                else:
                    words += data
                    del words[:-16384]
            told = gathering.progress or (gathering.complete, ranks)
            if progress is not None and told != shown:
                shown = told
                progress(*told)
            if gathering.complete == ranks:
                until_s = min(until_s, now_s + _GRACE_S)


def _read(handle: int) -> Optional[bytes]:
    try:
        return os.read(handle, 1 << 16)
    except BlockingIOError:
        return None


def _end(process: subprocess.Popen[bytes]) -> Optional[int]:
    """End the launcher and everything in its session. Its status, ``None`` if it was we who ended it."""
    try:
        status: Optional[int] = process.wait(timeout=0.2)
    except subprocess.TimeoutExpired:
        status = None
    for number, patience_s in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 2.0)):
        if process.poll() is not None:
            break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=patience_s)
    # Ranks that outlived their launcher are still in its process group.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return status


def _unknown_names(launch: Launch, gathering: Gathering) -> str:
    """Hosts that no rank was heard of and that this machine's resolver does not know: Hydra ends so fast that what ssh
    says of them is lost. (A name may still be an alias of ssh's own.)"""
    if gathering.complete:
        return ""
    unknown = []
    for host in launch.hosts[:64]:
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            unknown.append(f"{host}: {error.strerror or error}")
    return "\n".join(unknown)


def _last_words(*texts: str) -> str:
    lines = [line.rstrip() for text in texts for line in text.splitlines() if line.strip()]
    return "\n".join(lines[-12:])[-2000:]
