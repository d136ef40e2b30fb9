"""Probes: each reads one source of facts, read-only, and never judges.

A file of this package that has a ``PROBES`` tuple is found by itself: adding one touches nothing else. A probe is a
generator over facts; it may raise :class:`Unseen` to say why there is nothing, and everything else that it raises
becomes a ``Missing`` fact with the error's text.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import Callable, Iterator, List, Tuple, Type

from chainerdoctor.facts import Fact
from chainerdoctor.host import Host

#: Scopes: one rank of each node asks for the node, every rank asks for itself.
NODE = "node"
RANK = "rank"

#: Waves: what only looks; what computes on the devices, and so would be seen by the first; what could disturb the
#: launcher (MPI_Init), after everything else has been handed in.
LOOK, WORK, WORLD = range(3)

#: When a probe runs: in every check, only in one that also computes, only in one that does not.
ALWAYS = "always"
ACTIVE = "active"
PASSIVE = "passive"


@dataclass(frozen=True)
class Probe:
    """One source of facts.

    ``yields`` are the kinds that it can give; when it fails, these are what is missing. ``wave`` orders probes, and those
    of one wave run at once. ``when`` says whether it is part of a check that computes something (ACTIVE), of one that only
    looks (PASSIVE), or of both.
    """

    name: str
    scope: str
    deadline_s: float
    yields: Tuple[Type[Fact], ...]
    see: Callable[[Host], Iterator[Fact]]
    wave: int = LOOK
    when: str = ALWAYS


class Unseen(Exception):
    """Raised by a probe to say why there is nothing to see.

    ``reason`` is one of the words of :mod:`chainerdoctor.facts` (``absent``, ``unsupported``, ``denied``…).
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def all_probes(active: bool = True) -> Tuple[Probe, ...]:
    """Every probe of this package that belongs to a check of this kind, in the order of file names."""
    found: List[Probe] = []
    for module in pkgutil.iter_modules(__path__):
        found += list(getattr(importlib.import_module(f"{__name__}.{module.name}"), "PROBES", ()))
    return tuple(probe for probe in found if probe.when in (ALWAYS, ACTIVE if active else PASSIVE))
