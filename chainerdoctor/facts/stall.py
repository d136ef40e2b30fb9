"""Where each rank of a run is, or was last: what the stall autopsy matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class CommunicatorCall:
    """One call of a communicator.

    ``communicator`` names the communicator alike on all its ranks (``0-3/1``: the first over ranks 0 to 3). ``index`` is
    the call's place in the row of that communicator's collectives, or of the messages with one peer; ``number`` counts
    the calls of this ``operation``, from 1. ``size_bytes`` is -1 where the caller alone does not know it. ``peer`` is the
    root's or the other side's rank in the communicator, -1 where there is none. ``parameters`` is a hash of the
    parameter set (names, shapes, what is initialised); ``lacking`` are parameters without a gradient. ``via`` is the part
    of ChainerMN that called. ``done`` says whether the call has returned."""

    operation: str
    communicator: str
    index: int
    number: int
    size_bytes: int
    dtype: str
    peer: int
    parameters: str
    lacking: Tuple[str, ...]
    place: str
    via: str
    phase: str
    iteration: int
    done: bool


@dataclass(frozen=True)
class Initialised:
    """A parameter that got its array late: its path, in which iteration (0 before the first), and where."""

    path: str
    iteration: int
    place: str


@dataclass(frozen=True)
class Whereabouts(Fact):
    """Where one rank is, by its own ring.

    ``state`` is ``inside`` (in a call of a communicator), ``outside``, ``returned`` or ``raised`` (its program has ended),
    or ``died`` (its process was gone before those of the others). ``since_s`` is how long nothing has changed in the ring,
    ``idle_s`` how long the process has used no CPU and read nothing. ``doing`` is ``running``, ``sleeping``, ``blocked``,
    ``frozen`` (not even its watcher runs), empty where nobody saw it, or the name of an MPI function that the program calls by itself. ``place`` is
    the program's own line, ``line`` the text of the innermost one. ``history`` are the last calls, the present one last."""

    state: str
    phase: str
    iteration: int
    since_s: float
    idle_s: float
    doing: str
    place: str
    line: str
    error: str
    history: Tuple[CommunicatorCall, ...]
    initialised: Tuple[Initialised, ...]


@dataclass(frozen=True)
class StallWatch(Fact):
    """The autopsy's settings and what it saw while the program ran. ``sentence`` is the verdict of that time, if any;
    ``aborted`` says that the program was ended for it. ``interrupted`` says that a person or scheduler ended the run."""

    timeout_s: float
    size: int
    sentence: str
    aborted: bool
    interrupted: bool
