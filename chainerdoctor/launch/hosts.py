"""Host lists: ``--hosts a,b:4`` and hostfiles in the forms that MPICH and Open MPI read."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import List, Optional, Tuple

_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"


class HostsError(ValueError):
    """A host list cannot be read; the text names the place."""


@dataclass(frozen=True)
class Slots:
    """A host and how many ranks it takes."""

    host: str
    slots: int


def parse_hosts(text: str) -> Tuple[Slots, ...]:
    """``a,b:4`` → a with one slot, b with four.

    Raises:
        HostsError: an entry is empty or malformed.
    """
    return _merged([_entry(item.strip(), f"--hosts, entry {n}") for n, item in enumerate(text.split(","), 1)])


def parse_hostfile(text: str, path: str) -> Tuple[Slots, ...]:
    """One host a line: ``host``, ``host:4`` (MPICH) or ``host slots=4 max_slots=8`` (Open MPI); ``#`` is a comment.

    Raises:
        HostsError: a line is none of these, or there is no host at all.
    """
    found: List[Slots] = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#")[0].strip()
        if not line:
            continue
        words = re.fullmatch(rf"({_NAME})((?:\s+\w+\s*=\s*\S+)+)", line)
        if words is None:
            found.append(_entry(line, f"{path}, line {number}"))
            continue
        values = dict(re.findall(r"(\w+)\s*=\s*(\S+)", words.group(2)))
        if not set(values) <= {"slots", "max_slots", "max-slots"}:
            raise HostsError(f"{path}, line {number}: only slots= and max_slots= are known: {line[:60]!r}")
        found.append(_entry(f"{words.group(1)}:{values.get('slots', '1')}", f"{path}, line {number}"))
    if not found:
        raise HostsError(f"{path}: no host in it")
    return _merged(found)


def _entry(text: str, where: str) -> Slots:
    found = re.fullmatch(rf"({_NAME})(?::([0-9]{{1,6}}))?", text)
    if found is None:
        raise HostsError(f"{where}: not a host or host:slots: {text[:60]!r}")
    slots = int(found.group(2) or 1)
    if slots < 1:
        raise HostsError(f"{where}: {found.group(1)} has no slots")
    return Slots(found.group(1), slots)


def _merged(entries: List[Slots]) -> Tuple[Slots, ...]:
    """A host that is named twice has the slots of both lines, as mpiexec counts."""
    slots: dict[str, int] = {}
    for entry in entries:
        slots[entry.host] = slots.get(entry.host, 0) + entry.slots
    return tuple(Slots(host, count) for host, count in slots.items())


def place(hosts: Tuple[Slots, ...], ranks: Optional[int]) -> Tuple[Slots, ...]:
    """Fill the hosts in order until ``ranks`` (all slots if ``None``) are placed.

    Raises:
        HostsError: there are fewer slots than ranks.
    """
    total = sum(entry.slots for entry in hosts)
    wanted = total if ranks is None else ranks
    if wanted > total:
        raise HostsError(f"{wanted} ranks were asked for and the hosts have {total} slots (write host:SLOTS)")
    placed: List[Slots] = []
    for entry in hosts:
        take = min(entry.slots, wanted - sum(p.slots for p in placed))
        if take:
            placed.append(Slots(entry.host, take))
    return tuple(placed)
