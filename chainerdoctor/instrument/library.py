"""check-gradients for programs that import it: ``with chainerdoctor.watch(optimizer):`` and a Trainer extension."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Iterator, List, Optional

from chainerdoctor.instrument.gradients import Gradients
from chainerdoctor.instrument.recording import Recording, open_recording, tell_end, write_manifest
from chainerdoctor.instrument.runner import Ended


class _Watching:
    """One recording from its start to its end; the program's own optimizers are known already."""

    now: Optional[_Watching] = None

    def __init__(self, optimizers: List[Any], out: Optional[str], stop_on: str, across_ranks: bool) -> None:
        if _Watching.now is not None:
            raise RuntimeError("gradients are being watched already: end that first")
        options = {"stop_on": stop_on, "across_ranks": across_ranks}
        name = Path(sys.argv[0] or "program").name
        self.folder = Path(out if out is not None else f"chainerdoctor-{name}-{os.getpid()}").resolve()
        self.folder.mkdir(parents=True, exist_ok=True)
        content = {"command": "check-gradients", "target": name, "instruments": {"gradients": options}}
        write_manifest(self.folder, {**content, "started_s": time.time()})
        self.recording: Recording = open_recording(self.folder)
        training = self.recording.training
        training.targets += [optimizer.target for optimizer in optimizers]
        training.watch()
        self._gradients = Gradients(self.recording, options)
        self._gradients.start()
        _Watching.now = self

    def end(self, error: Optional[BaseException]) -> None:
        _Watching.now = None
        self._gradients.stop()
        self.recording.training.stop()
        tell_end(self.recording, Ended(error))

    def report(self) -> None:
        """Print the report, on rank 0."""
        if self.recording.rank == 0:
            sys.stdout.flush()
            wait = ["--wait", "15"] if self.recording.size > 1 else []
            subprocess.call([sys.executable, "-m", "chainerdoctor", "report", str(self.folder), *wait])


@contextlib.contextmanager
def watch(
    *optimizers: Any, out: Optional[str] = None, stop_on: str = "never", across_ranks: bool = False, report: bool = True
) -> Iterator[Path]:
    """Watch the gradients of these optimizers (set up already) while the block runs, as check-gradients does.

    ``out`` is the folder of the recording (the same for all ranks); ``stop_on="error"`` leaves the program with exit code
    1 before a gradient that is not finite is applied. The block gets the folder. At its end rank 0 prints the report.

    Raises:
        OSError: the folder cannot be written.
        RuntimeError: gradients are being watched already.
    """
    watching = _Watching(list(optimizers), out, stop_on, across_ranks)
    try:
        yield watching.folder
    except BaseException as error:
        watching.end(error)
        raise
    else:
        watching.end(None)
    finally:
        if report:
            watching.report()


def GradientMonitor(  # noqa: N802  (Chainer's extensions are called like classes)
    out: Optional[str] = None, stop_on: str = "never", across_ranks: bool = False, report: bool = True
) -> Any:
    """A Trainer extension that watches the gradients of all of its updater's optimizers; options as for :func:`watch`."""
    from chainer.training import Extension

    class Monitor(Extension):  # type: ignore[misc]
        """Begins with the Trainer and ends with it."""

        default_name = "GradientMonitor"
        trigger = (1, "epoch")
        _watching: Optional[_Watching] = None
        _error: Optional[BaseException] = None

        def initialize(self, trainer: Any) -> None:
            optimizers = list(trainer.updater.get_all_optimizers().values())
            self._watching = _Watching(optimizers, out, stop_on, across_ranks)

        def __call__(self, trainer: Any) -> None:
            """Nothing: everything happens in hooks."""

        def on_error(self, trainer: Any, exception: Exception, traceback: Any) -> None:
            self._error = exception

        def finalize(self) -> None:
            watching, self._watching = self._watching, None
            if watching is not None:
                watching.end(self._error)
                if report:
                    watching.report()

    return Monitor()
