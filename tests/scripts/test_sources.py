"""Sources that cannot be read, or only in part: one clear line each, and the rest is still checked."""

import json
from pathlib import Path

import pytest

from chainerdoctor.facts import Missing
from chainerdoctor.facts.script import ScriptFile, ScriptUnread
from chainerdoctor.scripts.gather import NothingToCheckError, read_scripts
from chainerdoctor.scripts.source import MAX_BYTES, UnreadableError, read_source

SICK = "import chainermn\ncomm = chainermn.create_communicator('hierarchical')\n"

BROKEN = {
    "syntax": (b"x = 1\ndef f(:\n    pass\n", 2, "not valid Python"),
    "binary": (b"import os\nx = '\0\0'\n", 2, "NUL bytes"),
    "an ELF file": (b"\x7fELF\x02\x01\x01" + bytes(range(256)), 1, "NUL bytes"),
    "Latin-1 without a cookie": ("# fertig\ns = 'gr\u00fc\u00df'\n".encode("latin-1"), 2, "not utf-8 text"),
    "an unknown cookie": (b"# -*- coding: klingon -*-\nx = 1\n", 1, "encoding cannot be told"),
    "brackets": (b"x = 1\ny = " + b"(" * 5000 + b"1" + b")" * 5000 + b"\n", 2, "nested too deeply"),
    "unary operators": (b"x = " + b"-" * 200_000 + b"1\n", 0, "nested too deeply"),
    "blocks": ("".join(" " * n + "if x:\n" for n in range(150)).encode() + b" " * 150 + b"pass\n", None, ""),
    "tabs and blanks": (b"if 1:\n        x = 1\n\ty = 2\n", 3, "not valid Python"),
    "Python 2": (b"import chainer\nprint 'epoch', 1\n", 2, "Python 2 source"),
    "huge": (b"x = 1\n" * (MAX_BYTES // 6 + 1), 0, "MiB"),
    "a lone surrogate": (b"x = '\xed\xa0\x80'\n", 1, "not utf-8"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_source_is_one_clear_line(name: str, tmp_path: Path) -> None:
    data, line, words = BROKEN[name]
    path = tmp_path / "train.py"
    path.write_bytes(data)
    with pytest.raises(UnreadableError) as caught:
        read_source(str(path))
    assert words in caught.value.reason
    assert "\n" not in caught.value.reason
    if line is not None:
        assert caught.value.line == line


def test_the_rest_is_checked_and_the_whole_is_not_called_clear(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text(SICK)
    for number, (data, _, _) in enumerate(BROKEN.values()):
        (tmp_path / f"bad{number}.py").write_bytes(data)
    snapshot = read_scripts([str(tmp_path)])
    assert [seen.fact.path for seen in snapshot.all(ScriptFile)] == [str(tmp_path / "good.py")]
    assert len(snapshot.all(ScriptUnread)) == len(BROKEN)
    (missing,) = snapshot.all(Missing)
    assert f"{len(BROKEN)} of {len(BROKEN) + 1} files could not be read" in missing.fact.detail


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\ufeffimport chainer\n",
        "# -*- coding: latin-1 -*-\nx = 1\n",
        "import chainer\r\nx = chainer.Variable\r\n",
        "x = " + " + ".join(["1"] * 900) + "\n",
        "x = a" + ".b" * 900 + "\n",
        "if x == 0:\n    pass\n" + "".join(f"elif x == {n}:\n    pass\n" for n in range(1, 900)),
        "x = f(" + ", ".join(f"k{n}={n}" for n in range(5000)) + ")\n",
        "x = [" + "[1]," * 20_000 + "]\n",
        "x = '(' * 200 + '[' * 200\ns = '''" + "((((" * 100 + "'''\n",
        "async def f():\n    async with a as b:\n        async for c in d:\n            await c\n",
        "def f(a, /, b, *, c):\n    return (n := a)\n",
        "lambda *a, **k: (yield)\n",
        "x = {**a, 'b': [*c]}\ndel x\nglobal y\n",
        "class A(B, metaclass=C):\n    x: int\n    def f(self): return super().f\n",
    ],
)
def test_unusual_but_valid_source_is_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(text.encode("latin-1" if "latin-1" in text else "utf-8"))
    (seen,) = read_scripts([str(path)]).all(ScriptFile)
    assert seen.fact.path == str(path)


def cell(*lines: str, kind: str = "code") -> dict:
    return {"cell_type": kind, "source": [line + "\n" for line in lines], "metadata": {}, "outputs": []}


def test_notebook_cells_are_read_with_their_magics_left_out(tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    cells = [
        cell("# Title", kind="markdown"),
        cell("%matplotlib inline", "import chainermn", "!nvidia-smi"),
        cell("%%bash", "mpiexec -n 4 python train.py (((("),
        cell("comm = chainermn.create_communicator('hierarchical')", "comm?"),
    ]
    path.write_text(json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 2, "metadata": {}}))
    (seen,) = read_scripts([str(path)]).all(ScriptFile)
    assert (seen.fact.form, seen.fact.cells_left_out) == ("notebook", 1)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"cells": 3}', '{"cells": [1]}', "nonsense", "[" * 100_000])
def test_what_is_no_notebook_is_said(text: str, tmp_path: Path) -> None:
    path = tmp_path / "train.ipynb"
    path.write_text(text)
    with pytest.raises(UnreadableError):
        read_source(str(path))


def test_nothing_to_check_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NothingToCheckError, match="nothing to check"):
        read_scripts([str(tmp_path)])
    with pytest.raises(NothingToCheckError, match="no such file"):
        read_scripts([str(tmp_path / "gone.py")])
