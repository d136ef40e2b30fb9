"""Runs a person's program in this process as ``python train.py`` or ``python -m package.train`` would.

``sys.argv``, ``sys.path[0]``, ``__main__``, ``__file__``, the exit code and the traceback are those of plain Python;
multiprocessing's spawn and forkserver find the program's ``__main__``. Instruments are started before the program's
first line and stopped after its last, whatever way it ended.
"""

from __future__ import annotations

import atexit
import importlib.machinery
import importlib.util
import io
import os
import signal
import sys
import threading
import zipfile
from dataclasses import dataclass
from types import CodeType, ModuleType, TracebackType
from typing import Callable, List, NoReturn, Optional, Protocol, Sequence, Set, Tuple

#: Frames of files in this folder are not the program's.
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: Gives the program's code; what it raises (a SyntaxError) is the program's own.
Loading = Callable[[], CodeType]


class CannotRun(Exception):
    """There is no such program; the text is one line."""


class Instrument(Protocol):
    """Something that looks at the program while it runs."""

    def start(self) -> None:
        """Called once, before the program's first line."""

    def stop(self) -> None:
        """Called once, after the program ended or raised."""


@dataclass(frozen=True)
class Program:
    """What to run: a script (or a folder or zip with a ``__main__.py``), or a module by name, and its arguments."""

    target: str
    arguments: Tuple[str, ...] = ()
    is_module: bool = False


@dataclass(frozen=True)
class Ended:
    """How the program ended; ``exception`` is what it let through, ``SystemExit`` included."""

    exception: Optional[BaseException] = None

    @property
    def exit_code(self) -> int:
        """The exit code that Python would give: 0, the code of ``SystemExit``, or 1."""
        if self.exception is None:
            return 0
        if isinstance(self.exception, SystemExit):
            code = self.exception.code
            return 0 if code is None else code if isinstance(code, int) else 1
        return 1


def run(program: Program, instruments: Sequence[Instrument] = ()) -> Ended:
    """Run the program to its end.

    Its ``__main__`` stays in ``sys.modules`` afterwards, as it would: exit handlers and threads may still use it.

    Raises:
        CannotRun: there is no such file or module.
    """
    started: List[Instrument] = []
    try:
        for instrument in instruments:
            instrument.start()
            started.append(instrument)
        return _execute(program)
    finally:
        for instrument in reversed(started):
            instrument.stop()


def leave(ended: Ended) -> NoReturn:
    """Tell of an uncaught exception as Python does, and leave with the program's exit code."""
    error = ended.exception
    if error is None:
        raise SystemExit(0)
    if isinstance(error, SystemExit):
        raise error.with_traceback(None)
    # Through sys.excepthook, because the program may have set one (ChainerMN's aborts all ranks).
    sys.excepthook(type(error), error, error.__traceback__)
    if isinstance(error, KeyboardInterrupt):
        _die_of_interrupt()
    raise SystemExit(1)


def _die_of_interrupt() -> None:
    """Python ends by the signal itself, so that a shell or mpiexec sees an interrupt and not a failure."""
    # What an ordinary exit would do first; the signal leaves no time for it.
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def _execute(program: Program) -> Ended:
    try:
        main, load = _module(program) if program.is_module else _script(program)
        sys.modules["__main__"] = main
        exec(load(), main.__dict__)  # noqa: S102  (running the program is the purpose)
    except CannotRun:
        raise
    except BaseException as error:
        _clean(error, set())
        return Ended(error)
    return Ended()


def _clean(error: BaseException, seen: Set[int]) -> None:
    """Take this package's frames out of the tracebacks of an exception and of those that led to it."""
    if id(error) in seen:
        return
    seen.add(id(error))
    error.__traceback__ = _without_our_frames(error.__traceback__)
    for other in (error.__cause__, error.__context__):
        if other is not None:
            _clean(other, seen)


def _without_our_frames(traceback: Optional[TracebackType]) -> Optional[TracebackType]:
    """The traceback with the program's and its libraries' frames; ``None`` for one that did not even compile."""
    kept: List[TracebackType] = []
    leading = True
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        # The import system runs the program for us; inside the program its frames are the program's own.
        ours = file.startswith(_HERE) or (leading and (file == importlib.util.__file__ or file.startswith("<frozen ")))
        if not ours:
            leading = False
            kept.append(traceback)
        traceback = traceback.tb_next
    made: Optional[TracebackType] = None
    for each in reversed(kept):
        made = TracebackType(made, each.tb_frame, each.tb_lasti, each.tb_lineno or each.tb_frame.f_code.co_firstlineno)
    return made


def _script(program: Program) -> Tuple[ModuleType, Loading]:
    path = _as_python_names_it(program.target)
    if os.path.isdir(path) or (os.path.isfile(path) and zipfile.is_zipfile(path)):
        return _folder_or_zip(program)
    try:
        with io.open_code(os.path.join(os.getcwd(), path)) as file:
            source = file.read()
    except OSError as error:
        raise CannotRun(f"can't open file '{program.target}': {error.strerror or error}") from None
    sys.argv = [program.target, *program.arguments]
    # Python resolves a link to the script before it takes the folder.
    _set_first_path(os.path.dirname(os.path.realpath(path)))
    main = _new_main(__file__=path, __cached__=None)
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    return main, lambda: compile(source, path, "exec", dont_inherit=True)


def _folder_or_zip(program: Program) -> Tuple[ModuleType, Loading]:
    path = _as_python_names_it(program.target)
    spec = importlib.machinery.PathFinder.find_spec("__main__", [path])
    if spec is None:
        raise CannotRun(f"can't find '__main__' module in '{program.target}'")
    sys.argv = [program.target, *program.arguments]
    _set_first_path(path)
    return _from_spec(spec, "")


def _module(program: Program) -> Tuple[ModuleType, Loading]:
    name = program.target
    # What the module's parent packages see while they are imported.
    sys.argv = ["-m", *program.arguments]
    _set_first_path(os.getcwd())
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name += ".__main__"
            spec = importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError) as error:
        # A parent package of the name is missing; another module that a parent imports is the program's own trouble.
        missing = getattr(error, "name", None)
        if missing is not None and not (name + ".").startswith(f"{missing}."):
            raise
        spec = None
    if spec is None or spec.loader is None:
        raise CannotRun(f"no module named '{name}'")
    sys.argv[0] = str(spec.origin)
    return _from_spec(spec, spec.parent or "")


def _from_spec(spec: importlib.machinery.ModuleSpec, package: str) -> Tuple[ModuleType, Loading]:
    loader = spec.loader
    get_code = getattr(loader, "get_code", None)
    if get_code is None:
        raise CannotRun(f"'{spec.name}' has no code that could be run")
    main = _new_main(__file__=spec.origin, __cached__=spec.cached)
    main.__loader__ = loader
    main.__spec__ = spec
    main.__package__ = package

    def load() -> CodeType:
        code: Optional[CodeType] = get_code(spec.name)
        if code is None:
            raise CannotRun(f"'{spec.name}' has no code that could be run")
        return code

    return main, load


def _as_python_names_it(path: str) -> str:
    # Absolute in ``__file__`` and in tracebacks since Python 3.9; the join leaves "./" as Python leaves it.
    return path if sys.version_info < (3, 9) else os.path.join(os.getcwd(), path)


def _new_main(**names: object) -> ModuleType:
    main = ModuleType("__main__")
    main.__dict__.update({"__builtins__": __builtins__, "__annotations__": {}, **names})
    return main


def _set_first_path(folder: str) -> None:
    """Put the program's folder where Python put chainerdoctor's own; nothing where Python is told not to."""
    if getattr(sys.flags, "safe_path", False):
        return
    if sys.flags.isolated:
        sys.path.insert(0, folder)
        return
    sys.path[0:1] = [folder]
