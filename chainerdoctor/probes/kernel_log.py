"""What the kernel's own log says of GPUs and NVSwitches: Xid, SXid, devices that fell off the bus."""

from __future__ import annotations

import re
import subprocess
from typing import Iterator, List, Optional

from chainerdoctor.facts import ABSENT, UNSUPPORTED, Fact
from chainerdoctor.facts.log import KernelLog, LogEvent
from chainerdoctor.host import Host
from chainerdoctor.logs.events import Events
from chainerdoctor.logs.kernel import WORDINGS
from chainerdoctor.probes import NODE, Probe, Unseen

#: Events that concern GPUs. A process that crashed last night is no fault of the cluster.
_EVENTS = frozenset(
    {
        "kernel.xid",
        "kernel.xid_action",
        "kernel.sxid",
        "kernel.fell_off_bus",
        "kernel.rm_init_failed",
        "kernel.nvidia_mismatch",
        "kernel.peermem",
    }
)
_WORDINGS = tuple(each for each in WORDINGS if each.event in _EVENTS)
#: Older messages tell of jobs that are long gone.
RECENT_S = 24 * 3600.0
_STAMP = re.compile(r"\[ *(\d+\.\d+)\]\s*")
_COMMANDS = (("dmesg",), ("journalctl", "-k", "-b", "-o", "short-monotonic", "--no-pager", "-q"))
_PATIENCE_S = 8.0


def kernel_log(host: Host) -> Iterator[Fact]:
    """Events of the last day, the first of each kind with its line; only where NVIDIA's driver is loaded."""
    if not host.glob("/proc/driver/nvidia*"):
        raise Unseen(ABSENT, "NVIDIA's kernel driver is not loaded")
    refusals: List[str] = []
    for command in _COMMANDS:
        try:
            ran = host.run(command, _PATIENCE_S)
        except (OSError, subprocess.TimeoutExpired) as error:
            refusals.append(f"{command[0]}: {type(error).__name__}")
            continue
        if ran.status == 0 and ran.out:
            node = host.read("/proc/sys/kernel/hostname").strip()
            yield from _facts(command[0], ran.out, node, _uptime_s(host))
            return
        refusals.append(f"{command[0]}: {(ran.err.strip().splitlines() or ['nothing'])[-1]}")
    # Many sites keep the kernel's log from users; that is their choice and no blind spot to be mended.
    raise Unseen(UNSUPPORTED, "; ".join(refusals))


def _facts(name: str, text: str, node: str, uptime_s: Optional[float]) -> Iterator[Fact]:
    events = Events(name)
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        found = _STAMP.search(line)
        if found is not None and uptime_s is not None and float(found[1]) < uptime_s - RECENT_S:
            continue
        message = line[found.end() :] if found is not None else line
        low = message.lower()
        for each in _WORDINGS:
            match = each.pattern.search(message) if each.stem in low else None
            if match is not None:
                detail = {name: value for name, value in match.groupdict().items() if value is not None}
                key = tuple(detail.get(name, "") for name in each.key)
                events.add(each.event, number, message, host=node, detail=detail, key=key)
                break
    yield KernelLog(name, len(lines))
    yield from events.facts()


def _uptime_s(host: Host) -> Optional[float]:
    try:
        return float(host.read("/proc/uptime").split()[0])
    except (OSError, ValueError, IndexError):
        return None


PROBES = (Probe("kernel_log", NODE, 20.0, (KernelLog, LogEvent), kernel_log),)
