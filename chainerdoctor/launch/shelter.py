"""Run probes where their crash or hang cannot take the agent down: each in a forked child, with a deadline.

A child writes one JSON line a fact to its own pipe, so what it saw before it died counts. Its standard output goes
nowhere (it would end up among the frames), its standard error is kept for the reason of a crash.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from dataclasses import dataclass, field
from typing import Dict, Iterable, Iterator, List, Optional

from chainerdoctor.codec import fact_from_json, fact_to_json
from chainerdoctor.facts import CRASHED, DENIED, ERROR, TIMEOUT, Fact, Missing
from chainerdoctor.host import Host
from chainerdoctor.launch.witness import die_with, end_at
from chainerdoctor.probes import WORLD, Probe, Unseen
from chainerdoctor.snapshot import Sighting

#: A probe that floods its pipe is stopped here; real ones give some kilobytes.
_MOST_BYTES = 64 * 1024 * 1024


@dataclass
class _Child:
    probe: Probe
    pid: int
    facts_fd: int
    errors_fd: int
    began_s: float
    at_s: float
    deadline_s: float
    text: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)
    done: bool = False


def run_probes(
    probes: Iterable[Probe], host: Host, node: str, rank: Optional[int], until_s: float
) -> Iterator[List[Sighting[Fact]]]:
    """Run the probes side by side and give each one's sightings as it ends.

    Always ends by the longest deadline, or by ``until_s`` (on the monotonic clock) if that comes first.
    """
    left_s = max(0.1, until_s - time.monotonic())
    children = {child.facts_fd: child for child in (_start(probe, host, left_s) for probe in probes)}
    while children:
        now = time.monotonic()
        waits = [max(0.0, c.began_s + c.deadline_s - now) for c in children.values()]
        handles = [fd for c in children.values() for fd in (c.facts_fd, c.errors_fd)]
        ready, _, _ = select.select(handles, [], [], min(waits))
        now = time.monotonic()
        for child in list(children.values()):
            late = now - child.began_s >= child.deadline_s
            _drain(child, ready)
            if child.done or late or len(child.text) > _MOST_BYTES:
                del children[child.facts_fd]
                yield _finish(child, node, rank, now)


def _start(probe: Probe, host: Host, left_s: float) -> _Child:
    facts_read, facts_write = os.pipe()
    errors_read, errors_write = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    at_s, began_s = time.time(), time.monotonic()
    agent = os.getpid()
    pid = os.fork()
    if pid == 0:
        # From here on nothing may return into the agent's code.
        try:
            die_with(agent)
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 0)
            os.dup2(null, 1)
            os.dup2(errors_write, 2)
            os.close(facts_read)
            os.close(errors_read)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            # Timers are not inherited: if the agent is killed, nobody else would end a probe that hangs.
            end_at(began_s + min(probe.deadline_s, left_s) + 2.0)
            with os.fdopen(facts_write, "wb", buffering=0) as out:
                for raw in _see(probe, host):
                    out.write(json.dumps(raw).encode() + b"\n")
            if probe.wave == WORLD:
                end_through_c()
        finally:
            os._exit(0)
    os.close(facts_write)
    os.close(errors_write)
    for handle in (facts_read, errors_read):
        os.set_blocking(handle, False)
    return _Child(probe, pid, facts_read, errors_read, began_s, at_s, min(probe.deadline_s, left_s))


def end_through_c() -> None:
    """End this process by the C library's ``exit``, which runs its handlers and none of Python's.

    MPICH 5 tells the launcher in such a handler that this rank has finalised. Without it Hydra takes the end of the
    process for a crash and kills the other ranks.
    """
    ctypes.CDLL(None).exit(0)


def _see(probe: Probe, host: Host) -> Iterator[Dict[str, object]]:
    """Facts as JSON objects; the last line is ``{"end": …}`` so that a cut stream is told from a finished one."""
    try:
        for fact in probe.see(host):
            yield fact_to_json(fact)
    except Unseen as unseen:
        yield {"end": [unseen.reason, unseen.detail]}
    except PermissionError as error:
        yield {"end": [DENIED, f"{type(error).__name__}: {error}"]}
    except Exception as error:
        yield {"end": [ERROR, f"{type(error).__name__}: {error}"]}
    else:
        yield {"end": None}


def _drain(child: _Child, ready: List[int]) -> None:
    if child.errors_fd in ready:
        # Bounded: only the last words matter.
        child.errors = (child.errors + (_read(child.errors_fd) or b""))[-4096:]
    if child.facts_fd in ready:
        while True:
            piece = _read(child.facts_fd)
            if piece is None:
                return
            if not piece:
                child.done = True
                return
            child.text += piece


def _read(handle: int) -> Optional[bytes]:
    """Bytes, ``b""`` at the end of the stream, ``None`` where nothing is there yet."""
    try:
        return os.read(handle, 65536)
    except BlockingIOError:
        return None


def _finish(child: _Child, node: str, rank: Optional[int], now: float) -> List[Sighting[Fact]]:
    probe, took_s = child.probe, now - child.began_s
    status = _end(child)
    facts: List[Fact] = []
    ended: object = "cut"
    for line in bytes(child.text).split(b"\n")[:-1]:
        raw = json.loads(line)
        if "end" in raw:
            ended = raw["end"]
        else:
            facts.append(fact_from_json(raw))
    seen = {fact.kind for fact in facts}
    unseen = tuple(kind.kind for kind in probe.yields if kind.kind not in seen)
    if isinstance(ended, list):
        facts.append(Missing(probe.name, ended[0], ended[1], unseen))
    elif ended is None and probe.wave == WORLD and status != _CLEAN:
        # The launcher was not told that this rank has finalised: the agent must not simply leave.
        how = status or "it did not end after its last word"
        facts.append(Missing(probe.name, TIMEOUT if status is None else CRASHED, how, ("a clean end",)))
    elif ended == "cut":
        words = bytes(child.errors).decode("utf-8", "replace").strip().splitlines()
        last_words = f"; last words: {words[-1][:300]}" if words else ""
        if status is None:
            facts.append(Missing(probe.name, TIMEOUT, f"no answer in {child.deadline_s:.1f} s{last_words}", unseen))
        else:
            facts.append(Missing(probe.name, CRASHED, f"{status}{last_words}", unseen))
    where = None if probe.scope == "node" else rank
    return [Sighting(node, where, probe.name, child.at_s, took_s, fact) for fact in facts]


_CLEAN = "the probe ended before it had finished"


def _end(child: _Child) -> Optional[str]:
    """Reap the child; how it ended as text (:data:`_CLEAN` for status 0), or ``None`` if it had to be killed."""
    if child.errors_fd >= 0 and child.done:
        child.errors = (child.errors + (_read(child.errors_fd) or b""))[-4096:]
    killed = False
    # After its last word a child may still have to tell the launcher that it has finalised, which takes its time on a
    # busy machine; an MPI that is killed before that takes all other ranks with it.
    patience_s = child.began_s + child.deadline_s - time.monotonic() if child.probe.wave == WORLD else 0.0
    deadline = time.monotonic() + max(1.0, patience_s)
    while True:
        pid, status = os.waitpid(child.pid, os.WNOHANG)
        if pid:
            break
        if not killed and (not child.done or time.monotonic() > deadline):
            # Its own children too: a probe may have started a program that hangs.
            _kill_group(child.pid)
            killed = True
            deadline = time.monotonic() + 1.0
        elif killed and time.monotonic() > deadline:
            break  # in uninterruptible sleep (a driver call): nobody can end it, and it must not hold us up
        time.sleep(0.002)
    os.close(child.facts_fd)
    os.close(child.errors_fd)
    if killed:
        return None
    if status == 0:
        return _CLEAN
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"the probe was ended by {signal.Signals(number).name}"
    return f"the probe ended with status {os.WEXITSTATUS(status)} before it had finished"


def _kill_group(pid: int) -> None:
    for victim in (-pid, pid):
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            continue
