"""What runs on every rank: run the probes, hand in what they saw as frames on standard output. Standard library only.

Started as ``python -m chainerdoctor.launch.agent --deadline S [--passive]``. It ends by itself at the deadline, whatever hangs: a
launcher that was killed must not leave agents behind on other machines.
"""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from chainerdoctor.facts import Missing
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.host import Host, LiveHost
from chainerdoctor.launch.frames import frames
from chainerdoctor.launch.identity import identity
from chainerdoctor.launch.shelter import run_probes
from chainerdoctor.launch.witness import witnessed
from chainerdoctor.probes import LOOK, NODE, WORK, WORLD, Probe, all_probes
from chainerdoctor.snapshot import sighting_to_json

Send = Callable[[Dict[str, Any]], None]


def look(
    host: Host,
    told: Optional[LaunchedAs],
    send: Send,
    until_s: float,
    waves: Tuple[int, ...] = (LOOK, WORK, WORLD),
    active: bool = True,
) -> bool:
    """Say hello, then run every probe that this process is responsible for and send each one's sightings as it ends.

    Probes of the node are run by one rank of the node (local rank 0, or everybody where the launcher tells no local
    rank). ``waves`` are those of the probes, one after the other; ``active`` checks also compute something. All ends by
    ``until_s`` on the monotonic clock. The result says whether the probes of the last wave ended well.
    """
    leads = told is None or told.local_rank in (None, 0)
    rank = None if told is None else told.rank
    node = socket.gethostname()
    send({"hello": {"node": node, "boot": _boot(host), "size": 1 if told is None else told.size}})
    mine = [probe for probe in all_probes(active) if leads or probe.scope != NODE]
    clean = True
    for wave in waves:
        probes: List[Probe] = [probe for probe in mine if probe.wave == wave]
        for sightings in run_probes(probes, host, node, rank, until_s):
            send({"sightings": [sighting_to_json(seen) for seen in sightings]})
            if wave == WORLD and any(isinstance(seen.fact, Missing) and seen.fact.blind for seen in sightings):
                clean = False
    return clean


def main(arguments: Optional[List[str]] = None) -> int:
    """Entry point of the agent."""
    parser = argparse.ArgumentParser(prog="chainerdoctor.launch.agent")
    parser.add_argument("--deadline", type=float, required=True, help="end by then, in seconds from now")
    parser.add_argument("--passive", action="store_true", help="look only, compute nothing")
    options = parser.parse_args(arguments)
    began_s = time.monotonic()
    host = LiveHost()
    told = identity(host.environ)
    rank = 0 if told is None else told.rank

    def agent() -> bool:
        sender = Sender(rank, write_frames)
        # What hangs has to be told before the end: the last part of the time is for handing in.
        end_s = began_s + options.deadline - min(3.0, options.deadline / 4)
        clean = look(host, told, sender.send, end_s, active=not options.passive)
        sender.send({"final": True})
        # The second copy goes backwards: what cut one frame is unlikely to cut the same one again.
        write_frames(sender.sent[::-1])
        return clean

    return witnessed(agent, rank, began_s + options.deadline)


def _boot(host: Host) -> str:
    try:
        return host.read("/proc/sys/kernel/random/boot_id").strip()
    except OSError:
        return ""


class Sender:
    """Numbers a rank's messages, makes frames of them, and passes each message's frames on."""

    def __init__(self, rank: int, write: Callable[[List[bytes]], None]) -> None:
        self._rank = rank
        self._write = write
        self._messages = 0
        #: Every frame so far.
        self.sent: List[bytes] = []

    def send(self, content: Dict[str, Any]) -> None:
        """Send one message; the time of sending goes with it."""
        lines = frames(self._rank, self._messages, {**content, "t": time.time()})
        self._messages += 1
        self.sent += lines
        self._write(lines)


def write_frames(lines: List[bytes], handle: int = 1) -> None:
    """One call a frame, so that a pipe keeps it in one piece."""
    for line in lines:
        while line:
            line = line[os.write(handle, line) :]


if __name__ == "__main__":
    sys.exit(main())
