"""``chainerdoctor run`` beside Python itself: the same program started both ways has to do, print and return the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import List, Tuple

import pytest

ROOT = Path(__file__).resolve().parents[2]

SHOW = """
import os, sys
print(sys.argv, __name__, __file__, __package__, type(__spec__).__name__, sys.path[0], "PYTHONPATH" in os.environ)
print(sorted(n for n in globals()))
print(sys.modules["__main__"].__dict__ is globals())
"""

SPAWN = """
import multiprocessing

def square(x):
    return x * x

if __name__ == "__main__":
    for method in ("spawn", "forkserver", "fork"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(square, [3, 4]))
"""

PROGRAMS = {
    "show": SHOW,
    "exit_7": "import sys; sys.exit(7)",
    "exit_text": "import sys; sys.exit('no data')",
    "exit_none": "import sys; sys.exit()",
    "exit_hard": "import os; os._exit(9)",
    "raises": "def f():\n    raise ValueError('bad batch')\nf()",
    "raises_eof": "raise EOFError('stdin')",
    "raises_pipe": "raise BrokenPipeError(32, 'Broken pipe')",
    "chained": "try:\n    1 / 0\nexcept ZeroDivisionError:\n    raise KeyError('x')",
    "syntax": "x = 1\ndef f(:\n",
    "atexit": "import atexit\natexit.register(print, 'bye')\nraise RuntimeError('late')",
    "hook": "import sys\nsys.excepthook = lambda t, v, tb: print('hook', t.__name__, tb.tb_frame.f_code.co_name)\n1 / 0",
    "thread": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('thread done'))).start()\nraise ValueError",
    "spawn": SPAWN,
    "interrupt": "import os, signal, time, atexit\natexit.register(print, 'cleaned')\n"
    "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(5)",
    "main_import": "import __main__\nprint(__main__.__file__)",
}


def _start(command: List[str], folder: Path) -> Tuple[int, str, str]:
    environ = {**os.environ, "CHAINERDOCTOR_ROOT": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    environ.pop("PYTHONPATH", None)
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def _doctor(*arguments: str) -> List[str]:
    # `python -c` gives sys.path[0] == "", as a console script gives its folder: the runner has to replace either.
    start = f"import sys; sys.path.insert(1, {str(ROOT)!r}); from chainerdoctor.cli import main; main(prog_name='chainerdoctor')"
    return [sys.executable, "-c", start, "run", *arguments]


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_script_ends_as_under_python(name: str, tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "train.py").write_text(textwrap.dedent(PROGRAMS[name]))
    arguments = ["sub/train.py", "--epoch", "3", "--help", "-m"]
    plain = _start([sys.executable, *arguments], tmp_path)
    ours = _start(_doctor(*arguments), tmp_path)
    assert ours == plain
    if name == "interrupt":
        assert ours[0] == -signal.SIGINT


@pytest.mark.parametrize("name", ["show", "raises", "exit_7", "spawn"])
def test_module_ends_as_under_python(name: str, tmp_path: Path) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("import sys\nprint('parent sees', sys.argv)\n")
    (package / "train.py").write_text(textwrap.dedent(PROGRAMS[name]))
    (package / "__main__.py").write_text("from pack import train\n")
    for module in ("pack.train", "pack"):
        plain = _start([sys.executable, "-m", module, "-x"], tmp_path)
        ours = _start(_doctor("-m", module, "-x"), tmp_path)
        assert (ours[0], ours[1]) == (plain[0], plain[1])
        # Python shows runpy's frames before the program's, and we show neither those nor our own.
        without_runpy = [line for line in plain[2].splitlines() if "runpy" not in line]
        assert set(ours[2].splitlines()) <= set(without_runpy)
        assert bool(ours[2]) == bool(plain[2])


def test_link_to_a_script_has_its_real_folder_first(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "train.py").write_text("import beside; print(beside.__name__, __file__)")
    (tmp_path / "real" / "beside.py").write_text("")
    (tmp_path / "link.py").symlink_to("real/train.py")
    assert _start(_doctor("link.py"), tmp_path) == _start([sys.executable, "link.py"], tmp_path)


def test_folder_with_main(tmp_path: Path) -> None:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").write_text(SHOW)
    assert _start(_doctor("app", "-q"), tmp_path) == _start([sys.executable, "app", "-q"], tmp_path)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "say which script to run"),
        (["nowhere.py"], "can't open file 'nowhere.py': No such file or directory"),
        (["-m", "no.such.module"], "no module named 'no.such.module'"),
        (["-m", "json"], "no module named 'json.__main__'"),
        (["--no-such-option", "x.py"], "no such option: --no-such-option"),
    ],
)
def test_wrong_use_is_one_line_and_2(arguments: List[str], complaint: str, tmp_path: Path) -> None:
    code, _, err = _start(_doctor(*arguments), tmp_path)
    assert code == 2
    assert complaint in err
    assert "Traceback" not in err


def test_instruments_start_before_and_stop_after_even_if_the_program_fails(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('training'); raise SystemExit(4)")
    program = f"""
    import sys
    from chainerdoctor.instrument.runner import Program, leave, run
    class Watch:
        def __init__(self, name): self.name = name
        def start(self): print("start", self.name)
        def stop(self): print("stop", self.name)
    leave(run(Program({str(script)!r}), [Watch("a"), Watch("b")]))
    """
    start = f"import sys; sys.path.insert(1, {str(ROOT)!r})\n" + textwrap.dedent(program)
    code, out, _ = _start([sys.executable, "-c", start], tmp_path)
    assert code == 4
    assert out.split("\n")[:-1] == ["start a", "start b", "training", "stop b", "stop a"]
