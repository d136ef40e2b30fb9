"""One process that records itself: its capture, what its training is doing, and the instruments asked for."""

from __future__ import annotations

import importlib
import json
import os
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Tuple

from chainerdoctor import __version__
from chainerdoctor.instrument.imports import when_imported
from chainerdoctor.instrument.runner import Ended, Instrument
from chainerdoctor.instrument.spool import Spool
from chainerdoctor.instrument.training import StopTraining, Training
from chainerdoctor.launch.identity import identity

#: Instruments: each is a module of this package with ``instrument(recording, options) -> Instrument``.
INSTRUMENTS: Tuple[str, ...] = ("gradients", "stall", "comm")
#: Packages whose versions a capture tells.
_PACKAGES = ("chainer", "chainermn", "cupy", "numpy")


@dataclass(frozen=True)
class Recording:
    """What an instrument gets. ``rank`` and ``size`` are the launcher's (0 and 1 without one)."""

    folder: Path
    rank: int
    size: int
    local_rank: int
    spool: Spool
    training: Training
    #: Called with the last record when the program has come to its end by itself.
    at_end: List[Callable[[Mapping[str, Any]], None]] = field(default_factory=list)


def capture_path(folder: Path, rank: int) -> Path:
    """Where the process of a rank records itself."""
    return folder / f"rank-{rank:05d}.capture"


def open_recording(folder: Path) -> Recording:
    """Begin this process's capture in the run's folder."""
    told = identity(os.environ)
    rank = 0 if told is None else told.rank
    spool = Spool(str(capture_path(folder, rank)))
    size, local_rank = (1, 0) if told is None else (told.size, told.local_rank or 0)
    recording = Recording(folder, rank, size, local_rank, spool, Training(spool))
    spool.tell(
        "begin",
        {
            "rank": rank,
            "size": size,
            "local_rank": local_rank,
            "launcher": "" if told is None else told.launcher,
            "node": socket.gethostname(),
            "pid": os.getpid(),
            "python": sys.version.split()[0],
            "t": time.time(),
            "monotonic": time.monotonic(),
        },
        now=True,
    )
    for name in _PACKAGES:
        when_imported(name, lambda module, name=name: _tell_version(spool, name, module))  # type: ignore[misc]
    return recording


def _tell_version(spool: Spool, name: str, module: Any) -> None:
    spool.tell("package", {"name": name, "version": str(getattr(module, "__version__", "")), "t": time.time()})


def make_instruments(recording: Recording, wishes: Mapping[str, Mapping[str, Any]]) -> List[Instrument]:
    """The instruments that were asked for, with their options; the one that follows the training comes first."""
    made: List[Instrument] = [_Follow(recording)]
    for name, options in wishes.items():
        if name not in INSTRUMENTS:  # a run's folder is data, not a list of things to import
            raise ValueError(f"no instrument is called {name!r}")
        module = importlib.import_module(f"{__package__}.{name}")
        made.append(module.instrument(recording, options))
    return made


class _Follow:
    """Lets the training be followed."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording

    def start(self) -> None:
        self._recording.training.watch()
        self._recording.training.on_iteration.append(lambda number: self._recording.spool.flush_if_due())

    def stop(self) -> None:
        self._recording.spool.flush()


def tell_end(recording: Recording, ended: Ended) -> None:
    """The last record of a program that came to its end by itself."""
    error = ended.exception
    how = "returned" if error is None else "exit" if isinstance(error, SystemExit) else "raised"
    if isinstance(error, StopTraining):
        how = "stopped"
    content: Dict[str, Any] = {"how": how, "code": ended.exit_code, "t": time.time()}
    content["iterations"] = recording.training.completed
    if how == "raised":
        content["error"] = f"{type(error).__name__}: {error}"[:2000]
        content["place"] = _last_place(ended)
    recording.spool.tell("end", content, now=True)
    recording.training.tell(recording.at_end, content)
    recording.spool.close()


def _last_place(ended: Ended) -> str:
    """File and line of the program's own code where it raised: the last frame that is in no installed package."""
    place, traceback = "", None if ended.exception is None else ended.exception.__traceback__
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        outside = "site-packages" in file or file.startswith(("<", sys.prefix, os.path.dirname(os.__file__)))
        if not outside and os.path.exists(file):  # compiled modules name sources that are not here
            place = f"{file}:{traceback.tb_lineno or traceback.tb_frame.f_code.co_firstlineno}"
        traceback = traceback.tb_next
    return place


def write_manifest(folder: Path, content: Mapping[str, Any]) -> None:
    """Write a run's ``run.json``, whole or not at all.

    Raises:
        OSError: the folder cannot be written.
    """
    path = folder / "run.json"
    # Ranks of a launcher write the same content at the same time: each its own file, moved into place.
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump({"kind": "chainerdoctor run", "schema": 1, "tool": __version__, **content}, file, indent=1)
    os.replace(temporary, path)


def manifest_of(folder: Path) -> Dict[str, Any]:
    """What ``run.json`` of a run's folder says.

    Raises:
        OSError, ValueError: there is none, or it is not what was written.
    """
    made = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    if not isinstance(made, dict) or made.get("kind") != "chainerdoctor run":
        raise ValueError("run.json is not chainerdoctor's")
    return made
