"""What was seen: frozen dataclasses, one module per subject.

A fact holds what a probe read and nothing else: no threshold, no severity, no advice. Units are part of a field's
name (``took_s``, ``size_bytes``). A field that can be absent is ``Optional`` and is then ``None`` because the machine
says "there is none"; what could not be *seen* is a :class:`Missing` fact instead.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass
from typing import ClassVar, Dict, Tuple, Type

_KINDS: Dict[str, Type[Fact]] = {}
_ALL_LOADED = False


class Fact:
    """One thing that was seen. Subclasses are frozen dataclasses and are registered by their class name."""

    kind: ClassVar[str] = "Fact"

    def __init_subclass__(cls) -> None:
        """Register the kind.

        Raises:
            TypeError: two facts in different modules share a class name, so a saved snapshot would be ambiguous.
        """
        super().__init_subclass__()
        cls.kind = cls.__name__
        known = _KINDS.get(cls.kind)
        if known is not None and known.__module__ != cls.__module__:
            raise TypeError(f"two kinds of fact are called {cls.kind}: {known.__module__} and {cls.__module__}")
        _KINDS[cls.kind] = cls


#: Reasons for which a fact is missing. The first two say that there is nothing to see; the others are blind spots.
ABSENT = "absent"  # the thing itself is not on this machine (no driver, no such package)
UNSUPPORTED = "unsupported"  # the thing is there and says that it cannot tell
DENIED = "denied"  # no permission
TIMEOUT = "timeout"  # the probe did not answer before its deadline
CRASHED = "crashed"  # the probe's process died (signal) or ended without an answer
ERROR = "error"  # the probe raised
SILENT = "silent"  # the whole rank said nothing

BLIND_REASONS = frozenset({DENIED, TIMEOUT, CRASHED, ERROR, SILENT})


@dataclass(frozen=True)
class Missing(Fact):
    """A probe could not see what it is there to see.

    ``reason`` is one of the words above, ``detail`` is the true error text, and ``kinds`` names the facts that are
    missing because of it.
    """

    probe: str
    reason: str
    detail: str
    kinds: Tuple[str, ...] = ()

    @property
    def blind(self) -> bool:
        """Whether something may be there that could not be seen (as against: there is nothing to see)."""
        return self.reason in BLIND_REASONS


@dataclass(frozen=True)
class Unknown(Fact):
    """A fact of a kind that this version does not know (a newer snapshot); ``raw`` is its JSON text, kept whole."""

    name: str
    raw: str


def fact_kinds() -> Dict[str, Type[Fact]]:
    """Every kind of fact by name, with all modules of this package loaded."""
    global _ALL_LOADED
    if not _ALL_LOADED:
        for module in pkgutil.iter_modules(__path__):
            importlib.import_module(f"{__name__}.{module.name}")
        _ALL_LOADED = True
    return _KINDS
