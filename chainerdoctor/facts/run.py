"""What a program did that ran under instruments: how it ended, where its time went, and how whole its captures are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional, Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class ProgramRun(Fact):
    """What was run: ``target`` is the script or module, ``instruments`` what recorded it, ``ranks`` how many processes
    were asked for (``None`` where the user's own launcher knew)."""

    target: str
    instruments: Tuple[str, ...]
    ranks: Optional[int]
    launcher: str


@dataclass(frozen=True)
class ProgramEnd(Fact):
    """How one rank's program ended. ``how`` is ``returned``, ``exit`` (``SystemExit``), ``raised``, ``stopped`` (by an
    instrument, on the user's demand), ``cannot run``, or
    ``cut``: the capture ends without a word, as after a signal or ``os._exit``. ``code`` is the exit code where it is
    known; ``error`` and ``place`` (file:line of the program's own code) are those of an exception. ``last_s`` is how long
    after its beginning the capture was written to last."""

    how: str
    code: Optional[int]
    iterations: int
    error: str
    place: str
    last_s: float


@dataclass(frozen=True)
class PhaseTimes(Fact):
    """Where one rank's time went. ``phases_s`` are the seconds in each phase over ``iterations``, without the first, which
    holds the program's start. ``median_s`` and ``longest_s`` are of whole iterations."""

    iterations: int
    wall_s: float
    median_s: float
    longest_s: float
    phases_s: Dict[str, float]


@dataclass(frozen=True)
class CaptureState(Fact):
    """How whole one file of a run is. ``damage`` says what could not be read, ``lost`` counts records that could not be
    written, by reason. ``failed`` are parts of the doctor that raised inside the program and were switched off there, with
    their errors."""

    file: str
    size_bytes: int
    damage: Tuple[str, ...]
    lost: Dict[str, int]
    failed: Dict[str, str]
