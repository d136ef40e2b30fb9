"""The compat layer: off unless asked for, nothing where nothing is needed, and in every child where it is asked for."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Dict, List, Optional

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "fixtures" / "scripts"


def _python(code: str, *, environ: Optional[Dict[str, str]] = None, folder: Optional[Path] = None) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(ROOT), **(environ or {})},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _run(options: List[str], script: Path, folder: Path, launcher: Optional[List[str]] = None) -> str:
    done = subprocess.run(
        [*(launcher or []), sys.executable, "-m", "chainerdoctor", "run", *options, str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _chainer_works() -> bool:
    code = "import chainerdoctor.compat, chainer"
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True).returncode == 0


needs_chainer = pytest.mark.skipif(not _chainer_works(), reason="Chainer is not installed in this environment")


def test_nothing_is_patched_for_programs_that_do_not_ask(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys\n"
        "print([type(f).__name__ for f in sys.meta_path if 'chainerdoctor' in type(f).__module__])\n"
        "print([n for n in sys.modules if n.startswith('chainerdoctor.compat')], 'children' in os.environ['PYTHONPATH'])\n"
    )
    assert _run([], script, tmp_path).split("\n")[:2] == ["[]", "[] False"]


def test_import_of_the_layer_alone_imports_neither_numpy_nor_anything_of_chainers() -> None:
    out = _python(
        """
        import sys
        before = set(sys.modules)  # a .pth file may have imported something already (old protobuf's does)
        import chainerdoctor.compat
        new = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(sorted(new & {"numpy", "chainer", "cupy", "google", "scipy"}))
        """
    )
    assert out == "[]"


def test_too_late_is_said(tmp_path: Path) -> None:
    (tmp_path / "chainer.py").write_text("")
    out = _python(
        """
        import sys
        sys.path.insert(0, ".")
        import chainer
        try:
            import chainerdoctor.compat
        except RuntimeError as error:
            print(error)
        """,
        folder=tmp_path,
    )
    assert out == "chainerdoctor.compat has to be imported before chainer"


SHOWS_LAYER = """
import sys
def seen():
    return any("chainerdoctor" in type(finder).__module__ for finder in sys.meta_path)
"""


def test_every_child_has_it(tmp_path: Path) -> None:
    (tmp_path / "shows.py").write_text(SHOWS_LAYER)
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, subprocess, sys
            import shows
            def child(_):
                return shows.seen()
            if __name__ == "__main__":
                print("self", shows.seen())
                for method in ("spawn", "forkserver", "fork"):
                    with multiprocessing.get_context(method).Pool(1) as pool:
                        print(method, *pool.map(child, [0]))
                program = "import shows, sys; print('subprocess', shows.seen(), any('children' in p for p in sys.path))"
                subprocess.run([sys.executable, "-c", program], check=True)
                subprocess.run([sys.executable, "-I", "-c", "import sys; print('isolated', len(sys.argv))"], check=True)
            """
        )
    )
    # Lines of children and parent interleave freely: compare them sorted.
    assert sorted(_run(["--compat"], script, tmp_path).split("\n")[:-1]) == sorted(
        ["self True", "spawn True", "forkserver True", "fork True", "subprocess True False", "isolated 1"]
    )


def test_ranks_and_their_children_have_it(tmp_path: Path) -> None:
    mpiexec = Path(sys.executable).parent / "mpiexec"
    if not mpiexec.exists():
        pytest.skip("no mpiexec in this environment")
    (tmp_path / "shows.py").write_text(SHOWS_LAYER)
    script = tmp_path / "launches.py"
    program = "import sys; sys.path.insert(0, '.'); import shows; sys.stdout.write('rank %s\\\\n' % shows.seen())"
    script.write_text(
        "import subprocess, sys\n"
        f"subprocess.run([{str(mpiexec)!r}, '-n', '2', sys.executable, '-c', \"{program}\"], check=True)\n"
    )
    assert _run(["--compat"], script, tmp_path).split() == ["rank", "True", "rank", "True"]


def test_another_sitecustomize_still_runs(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.theirs = 'theirs ran'")
    children = ROOT / "chainerdoctor" / "compat" / "children"
    out = _python(
        "import sys; print(theirs, [type(f).__name__ for f in sys.meta_path][:1], sys.modules['sitecustomize'].__file__)",
        environ={"PYTHONPATH": os.pathsep.join([str(children), str(tmp_path / "site")])},
    )
    # chainerdoctor itself is not on that path: it was taken from where the folder lies.
    assert out == f"theirs ran ['Finder'] {tmp_path / 'site' / 'sitecustomize.py'}"


def test_reach_children_keeps_what_is_there_and_does_not_repeat() -> None:
    from chainerdoctor.compat import reach_children

    environ = {"PYTHONPATH": "/a:/b"}
    reach_children(environ)
    reach_children(environ)
    folder, *rest = environ["PYTHONPATH"].split(":")
    assert rest == ["/a", "/b"]
    assert os.listdir(folder).count("sitecustomize.py") == 1


FAKE_CHAINER = {
    "chainer/__init__.py": "",
    "chainer/variable.py": "import numpy\ndef f(array):\n    return getattr(array, 'device', 'CPU')\nLINE = f.__code__.co_firstlineno\n",
    "chainer/distributions/__init__.py": "",
    "chainer/distributions/categorical.py": "X = 'another Chainer'\n",
}


@pytest.mark.parametrize(("numpy", "mended"), [("1.23.5", False), ("2.5.5", True)])
def test_a_spelling_is_applied_where_needed_and_only_there(numpy: str, mended: bool, tmp_path: Path) -> None:
    for name, text in FAKE_CHAINER.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "numpy.py").write_text(
        f"__version__ = {numpy!r}\nfrom unittest.mock import MagicMock\n"
        "inf = float('inf')\nclass ndarray:\n    device = 'cpu'\n"
        "def __getattr__(name):\n    return MagicMock(name)\n"
    )
    info = tmp_path / f"numpy-{numpy}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: numpy\nVersion: {numpy}\n")
    out = _python(
        """
        import sys, json
        sys.path.insert(0, ".")
        import chainerdoctor.compat
        import numpy, chainer.variable as v, chainer.distributions.categorical as c
        print(json.dumps([v.f(numpy.ndarray()), v.LINE, c.X, list(chainerdoctor.compat.applied())]))
        """,
        folder=tmp_path,
    )
    device, line, other, applied = json.loads(out)
    assert device == ("CPU" if mended else "cpu")
    assert line == 2
    assert other == "another Chainer"
    assert ("Variable.debug_print" in applied) is mended
    # Its text is not there: left alone, and not claimed.
    assert "Categorical.log_prob" not in applied


@needs_chainer
def test_with_versions_that_need_nothing_nothing_is_done() -> None:
    out = _python(
        """
        import chainerdoctor.compat, chainer, numpy, sys
        print(numpy.__version__, sys.version_info >= (3, 12), chainerdoctor.compat.applied())
        """
    )
    if not out.startswith("1.23.5 False"):
        pytest.skip("this environment has newer versions")
    # protobuf 4 and newer need the Caffe reader whatever Python is there.
    assert out in ("1.23.5 False ()", "1.23.5 False ('chainer.links.caffe',)")


@needs_chainer
def test_what_the_layer_mends_gives_what_it_gave() -> None:
    """Expected values are written out by hand: what NumPy 1.23 computed."""
    out = _python(
        """
        import chainerdoctor.compat
        import numpy as np, chainer, chainer.functions as F
        from chainer import testing
        x = [np.array([1, 2], np.uint8), np.array([3], np.uint8)]
        print(F.pad_sequence(x, padding=-1).array.tolist())
        p = chainer.distributions.Categorical(p=np.array([[.25, .75], [.5, .5]], np.float32))
        print(np.exp(p.log_prob(np.array([1, 0])).array).tolist())
        print("- device: CPU" in chainer.Variable(np.ones(2, np.float32)).debug_print())
        y = F.resize_images(np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2), (3, 3))
        print(y.array.ravel().tolist())
        from chainer.links.caffe.protobuf3 import caffe_pb2
        net = caffe_pb2.NetParameter(name="n"); net.layer.add(name="conv")
        print(caffe_pb2.NetParameter.FromString(net.SerializeToString()).layer[0].name)
        """
    )
    assert out.split("\n") == [
        "[[1, 2], [3, 255]]",
        "[0.75, 0.5]",
        "True",
        "[0.0, 0.5, 1.0, 1.0, 1.5, 2.0, 2.0, 2.5, 3.0]",
        "conv",
    ]


#: float32 has 24 bits (6e-8); 50 steps of training multiply a difference in the last bit by some tens.
_ROUNDING = 1e-5


@needs_chainer
@pytest.mark.parametrize("script", ["healthy_mlp.py", "healthy_cnn.py", "healthy_naive_ranks.py"])
def test_losses_are_those_of_python_311_and_numpy_1235(script: str, tmp_path: Path) -> None:
    launcher = None
    if "ranks" in script:
        mpiexec = shutil.which("mpiexec", path=str(Path(sys.executable).parent))
        if mpiexec is None:
            pytest.skip("no mpiexec in this environment")
        launcher = [mpiexec, "-n", "2"]
    wanted = json.loads((SCRIPTS / "healthy_losses.json").read_text())["losses"][script]
    out = _run(["--compat"], SCRIPTS / script, tmp_path, launcher)
    losses = [float(line.split()[1]) for line in out.splitlines()]
    assert len(losses) == len(wanted) == 50
    assert losses == pytest.approx(wanted, rel=_ROUNDING)
