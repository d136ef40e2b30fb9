"""One rank of an instrumented run: ``python -m chainerdoctor.instrument --run FOLDER [-m] TARGET ARGS…``.

What to record is in the folder's ``run.json``. This process becomes the program: its exit code and traceback are the
program's own. With ``--report`` rank 0 prints the report when its program has ended (it was started by the user's own
mpiexec or srun, so nobody else would).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import List, Optional

from chainerdoctor.instrument.recording import Recording, make_instruments, manifest_of, open_recording, tell_end
from chainerdoctor.instrument.runner import CannotRun, Ended, Program, leave, run


def main(arguments: Optional[List[str]] = None) -> None:
    """Entry point of a rank."""
    parser = argparse.ArgumentParser(prog="chainerdoctor.instrument")
    parser.add_argument("--run", required=True, type=Path)
    parser.add_argument("--report", help="JSON list: arguments of chainerdoctor report")
    parser.add_argument("--module", action="store_true")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    folder = options.run.resolve()
    wishes = manifest_of(folder)["instruments"]
    target, *rest = options.rest
    recording = open_recording(folder)
    try:
        ended = run(Program(target, tuple(rest), is_module=options.module), make_instruments(recording, wishes))
    except CannotRun as error:
        recording.spool.tell("end", {"how": "cannot run", "error": str(error), "code": 2}, now=True)
        print(f"Error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    tell_end(recording, ended)
    if options.report and recording.rank == 0:
        _report(recording, json.loads(options.report), ended)
    leave(ended)


def _report(recording: Recording, arguments: List[str], ended: Ended) -> None:
    """Print the report in a process of its own, which has nothing of this one's MPI."""
    sys.stdout.flush()
    words = [sys.executable, "-m", "chainerdoctor", "report", str(recording.folder), "--wait", "15", *arguments]
    code = subprocess.call(words, env=dict(os.environ))
    if ended.exit_code == 0 and code != 0:
        leave(Ended(SystemExit(code)))


if __name__ == "__main__":
    main()
