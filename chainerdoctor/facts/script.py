"""What training scripts say: the calls, settings and names of a source, with aliases resolved. Read by
``chainerdoctor.scripts``; nothing is imported or run.

Names are dotted and absolute: ``chainer.optimizers.Adam()`` is what a call of that class makes, ``….setup`` a method of
it, ``x[0]`` an element. A name that begins with ``?`` starts at something whose origin cannot be told, followed by how
the script calls it (``?args.gpu``). Several names stand for several possible origins. Lines and columns count from 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class Operand:
    """A value as far as it can be told.

    ``names`` are its possible origins, ``calls`` the numbers of the calls that made it, ``literal`` its ``repr`` if it
    is a constant. ``certain`` is false where a further origin is possible that could not be followed. ``default`` is
    the ``repr`` of an argparse option's default, if the value is that option.
    """

    names: Tuple[str, ...] = ()
    calls: Tuple[int, ...] = ()
    literal: Optional[str] = None
    certain: bool = True
    default: Optional[str] = None


@dataclass(frozen=True)
class ScriptFile(Fact):
    """One source that was read.

    ``form`` is "script" or "notebook"; ``imports`` are absolute names of modules from outside the given paths, ``uses``
    the paths of given files that it imports. ``cells_left_out`` counts notebook cells that are not Python; ``sha256`` is
    that of the file.
    """

    path: str
    form: str
    lines: int
    imports: Tuple[str, ...] = ()
    uses: Tuple[str, ...] = ()
    cells_left_out: int = 0
    sha256: str = ""


@dataclass(frozen=True)
class ScriptUnread(Fact):
    """A source that could not be read or parsed. ``python2`` is set if it is Python 2."""

    path: str
    line: int
    reason: str
    python2: bool = False


@dataclass(frozen=True)
class ScriptsRead(Fact):
    """Every source that was given could be read and parsed."""

    files: int


@dataclass(frozen=True)
class ScriptCall(Fact):
    """A call of something that belongs to the libraries or method names that the reader watches.

    ``number`` is unique in the snapshot and grows in the order of the code within one ``scope``. ``guards`` are the
    conditions under which it runs (callers' included), "not (…)" for an else branch; ``contexts`` the ``with`` items
    around it; ``loops`` the lines of the loops around it, the outermost first. ``receiver`` is what the method is
    called on, ``said`` its name in the script, if it is a plain name. ``open`` is set for ``*args`` or ``**kwargs`` that cannot be told.
    """

    path: str
    line: int
    column: int
    number: int
    names: Tuple[str, ...]
    scope: str
    receiver: Operand = field(default_factory=Operand)
    args: Tuple[Operand, ...] = ()
    keywords: Dict[str, Operand] = field(default_factory=dict)
    guards: Tuple[str, ...] = ()
    contexts: Tuple[str, ...] = ()
    loops: Tuple[int, ...] = ()
    open: bool = False
    said: str = ""


@dataclass(frozen=True)
class ScriptSetting(Fact):
    """An assignment to an attribute or an item: ``optimizer.loss_scale = 128``, ``os.environ['X'] = '1'``."""

    path: str
    line: int
    column: int
    targets: Tuple[str, ...]
    value: Operand
    scope: str
    guards: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ScriptKept(Fact):
    """A value that a loop adds to something made outside it: ``total += loss``, ``losses.append(loss)``.

    ``holder`` and ``value`` are the names in the script, ``origin`` is where the value comes from; ``how`` is "+=" or
    "append"; ``loop`` is the line of the innermost loop.
    """

    path: str
    line: int
    column: int
    holder: str
    value: str
    origin: Operand
    how: str
    scope: str
    loop: int


@dataclass(frozen=True)
class ScriptName(Fact):
    """Where a file mentions an absolute name under the same conditions of its own function.

    ``places`` are (line, column), in the order of the text. "import a.b" stands
    where the module itself is imported. What stands in a ``try`` with handlers has the guard "?try".
    """

    path: str
    name: str
    places: Tuple[Tuple[int, int], ...]
    guards: Tuple[str, ...] = ()


@dataclass(frozen=True)
class ScriptClass(Fact):
    """A class with the absolute names of its bases (through project classes) and of its own methods."""

    path: str
    line: int
    name: str
    bases: Tuple[str, ...]
    methods: Tuple[str, ...]


@dataclass(frozen=True)
class ScriptSuppression(Fact):
    """A comment ``# chainerdoctor: ignore[CD912]``; no codes means every rule."""

    path: str
    line: int
    codes: Tuple[str, ...] = ()
