"""Runs programs as ranks of an instrumented run, each in a fork of one process that has imported Chainer.

``python forked.py INSTRUMENTS-JSON FOLDER…``: each folder holds ``train.py``; its capture is written beside it.
"""

import contextlib
import json
import os
import sys


def run_one(folder: str, instruments: dict) -> None:
    from chainerdoctor.instrument import __main__ as entry

    wishes = {name: {**options, "repro": os.path.join(folder, "repro")} for name, options in instruments.items()}
    with open(os.path.join(folder, "run.json"), "w") as file:
        json.dump({"kind": "chainerdoctor run", "command": "test", "instruments": wishes}, file)
    with open(os.path.join(folder, "output"), "w") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(
        out
    ):
        entry.main(["--run", folder, os.path.join(folder, "train.py")])


if __name__ == "__main__":
    import chainer  # noqa: F401  (so that the forks need not)

    for each in sys.argv[2:]:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                run_one(each, json.loads(sys.argv[1]))
                code = 0
            except SystemExit as leaving:
                code = leaving.code if isinstance(leaving.code, int) else 1
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        with open(os.path.join(each, "code"), "w") as file:
            file.write(str(os.waitstatus_to_exitcode(status) if hasattr(os, "waitstatus_to_exitcode") else status >> 8))
