"""Bytes of a script or notebook → Python source. What cannot be read is said in one line."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import tokenize
import warnings
from dataclasses import dataclass
from typing import Any, List, Optional

#: Largest source that is read, in bytes; the largest training scripts that are known have a few hundred kilobytes.
MAX_BYTES = 4 * 1024**2
#: Largest notebook, which holds pictures beside its source.
MAX_NOTEBOOK_BYTES = 64 * 1024**2
#: Nested brackets or blocks beyond which nothing is parsed: Python's own parser stops at 100 to 200 with an error that
#: differs by version, and older ones crash.
MAX_NESTING = 90
#: Operators in one line or file chained so long that walking the tree would exhaust the stack.
_DEEP = "nested too deeply to be followed"

_PYTHON_2 = re.compile(
    r"^[ \t]*print[ \t]+[^\s(=.,:)\]]|^[ \t]*print[ \t]*>>|^[ \t]*except[ \t]+[\w.()]+[ \t]*,[ \t]*\w+[ \t]*:"
    r"|^[ \t]*raise[ \t]+\w[\w.]*[ \t]*,|^[ \t]*exec[ \t]+[^\s(=.,]|\bur['\"]|<>|^[ \t]*print[ \t]*\(.*\)[ \t]*%"
    r"|\b0[0-7]+\b|`\w+`|\blambda[ \t]*\(|^[ \t]*def[ \t]+\w+\([^)]*\([^)]*\)[^)=]*\):|\b\d+[lL]\b",
    re.MULTILINE,
)
_PRINT_EXPRESSION = re.compile(r"^[ \t]*print[ \t]+[\"'\w(]", re.MULTILINE)


@dataclass(frozen=True)
class Source:
    """Parsed source. ``text`` has the same line numbers as the file (for a notebook: of its cells joined)."""

    text: str
    tree: ast.Module
    form: str
    sha256: str
    cells_left_out: int = 0


class UnreadableError(Exception):
    """A source cannot be judged. ``line`` is 0 if no place can be named."""

    def __init__(self, reason: str, line: int = 0, python2: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.python2 = python2


def read_source(path: str) -> Source:
    """Read and parse a ``.py`` or ``.ipynb`` file.

    Raises:
        UnreadableError: no such luck; the reason is one line.
    """
    notebook = path.endswith(".ipynb")
    most = MAX_NOTEBOOK_BYTES if notebook else MAX_BYTES
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise UnreadableError(f"cannot be opened: {error.strerror or error}") from None
    if len(data) > most:
        raise UnreadableError(f"larger than the {most // 1024**2} MiB that are read")
    digest = hashlib.sha256(data).hexdigest()
    if notebook:
        return _notebook(data, digest)
    text = _decoded(data)
    return Source(text, _parsed(text), "script", digest)


def _decoded(data: bytes) -> str:
    if b"\0" in data:
        raise UnreadableError("holds NUL bytes: binary, not Python source", data[: data.index(b"\0")].count(b"\n") + 1)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        raise _not_text(data, error) from None
    except (SyntaxError, LookupError) as problem:
        try:
            data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _not_text(data, error) from None
        reason = str(problem).split(" for ")[0]
        raise UnreadableError(f"its encoding cannot be told: {reason}", 1) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _not_text(data: bytes, error: UnicodeDecodeError) -> UnreadableError:
    cookie = (
        " as its first lines say"
        if b"coding" in data[:200]
        else ", and no '# -*- coding: … -*-' in the first two lines"
    )
    return UnreadableError(f"not {error.encoding} text{cookie}", data[: error.start].count(b"\n") + 1)


def _parsed(text: str) -> ast.Module:
    deep = _too_deep(text)
    if deep:
        raise UnreadableError(_DEEP, deep)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        line = error.lineno or 0
        found = _python_2(text, line)
        if found:
            raise UnreadableError("Python 2 source", found, python2=True) from None
        raise UnreadableError(f"not valid Python: {_settled(error.msg)}", line) from None
    except (RecursionError, MemoryError):
        raise UnreadableError(_DEEP) from None
    except ValueError as error:
        raise UnreadableError(f"not valid Python: {error}") from None


def _settled(message: str) -> str:
    # The wording differs between Pythons ("Did you mean print(...)?"); only its head is the same everywhere.
    return message.split(". ")[0].split(" (")[0]


def _too_deep(text: str) -> int:
    """The line at which brackets nest deeper than can be parsed, 0 if nowhere."""
    if text.count("(") + text.count("[") + text.count("{") <= MAX_NESTING:
        return 0
    depth = 0
    for match in _BRACKETS.finditer(text):
        mark = match[0]
        if mark in "([{":
            depth += 1
            if depth > MAX_NESTING:
                return text.count("\n", 0, match.start()) + 1
        elif mark in ")]}":
            depth = max(0, depth - 1)
    return 0


_BRACKETS = re.compile(
    r"[()\[\]{}]|#[^\n]*|'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)"
    r"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"",
    re.DOTALL,
)


def _python_2(text: str, line: int) -> int:
    """The first line with Python 2 syntax at or after the parser's complaint (or anywhere), 0 if there is none."""
    lines = text.split("\n")
    near = "\n".join(lines[max(0, line - 2) : line + 1])
    if _PYTHON_2.search(near) or _PRINT_EXPRESSION.search(near):
        return line
    # Tabs mixed with blanks were legal then: the parser stops at them first.
    found = re.search(r"^[ \t]*print[ \t]+[\"'\w]|^[ \t]*except[ \t]+\w+[ \t]*,[ \t]*\w+:", text, re.MULTILINE)
    return text.count("\n", 0, found.start()) + 1 if found else 0


def _notebook(data: bytes, digest: str) -> Source:
    try:
        raw = json.loads(data.decode("utf-8-sig"))
        cells = raw["cells"] if "cells" in raw else [c for sheet in raw["worksheets"] for c in sheet["cells"]]
        sources = [_cell_text(cell) for cell in cells if cell.get("cell_type") == "code"]
    except RecursionError:
        raise UnreadableError(_DEEP) from None
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UnreadableError("not a Jupyter notebook (JSON with cells)") from None
    parts: List[str] = []
    body: List[ast.stmt] = []
    left_out, line = 0, 0
    first_error: Optional[UnreadableError] = None
    for source in sources:
        text = _without_magics(source)
        try:
            if text is None:
                left_out += 1
            else:
                tree = _parsed(text)
                ast.increment_lineno(tree, line)
                body += tree.body
        except UnreadableError as error:
            left_out += 1
            moved = UnreadableError(error.reason, error.line + line if error.line else 0, error.python2)
            first_error = first_error or moved
        parts.append(source)
        line += source.count("\n") + 1
    if first_error is not None and (first_error.python2 or not body):
        raise first_error
    return Source("\n".join(parts), ast.Module(body=body, type_ignores=[]), "notebook", digest, left_out)


def _cell_text(cell: Any) -> str:
    source = cell.get("source", cell.get("input", ""))
    return source if isinstance(source, str) else "".join(source)


def _without_magics(source: str) -> Optional[str]:
    """The cell as plain Python with as many lines, ``None`` if the cell is in another language (``%%bash``)."""
    stripped = source.lstrip()
    if stripped.startswith("%%") and not re.match(r"%%(time|timeit|capture|prun)\b", stripped):
        return None
    lines = source.split("\n")
    for number, line in enumerate(lines):
        bare = line.lstrip()
        if bare[:1] in ("%", "!") or (bare.endswith("?") and not bare.startswith("#")):
            lines[number] = line[: len(line) - len(bare)] + "pass"
    return "\n".join(lines)
