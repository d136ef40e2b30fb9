"""Writes a stand-alone script that runs the one operation that made a NaN or infinity, on the same arrays."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import textwrap
from typing import Any, Dict, List, Tuple

from chainerdoctor.instrument.replay import Culprit, cloned

#: For the written script to run once, with its import of Chainer.
_PATIENCE_S = 120.0

_SCRIPT = '''"""{title}

Needs Chainer and the file arrays.npz beside it. Exits with 1 while the result is not finite, and says so.
"""

import importlib
import os
import sys

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

{source}

HERE = os.path.dirname(os.path.abspath(__file__))
ARRAYS = np.load(os.path.join(HERE, "arrays.npz"))
SETTINGS = {settings}


def function():
    made = {kind}.__new__({kind})
    made.__dict__.update(SETTINGS)
    made.__dict__.update({{name[5:]: ARRAYS[name] for name in ARRAYS.files if name.startswith("self.")}})
    return made


def bad(name, array):
    count = int((~np.isfinite(array)).sum()) if array.dtype.kind == "f" else 0
    print(f"{{name}}: {{array.dtype}} {{array.shape}}, {{count}} not finite")
    return count


inputs = [chainer.Variable(ARRAYS[f"input{{n}}"]) for n in range({count})]
wrong = 0
{call}
for number, output in enumerate(outputs):
    wrong += bad(f"output {{number}}", output.array)
{backward}
sys.exit(1 if wrong else 0)
'''
_NEW_STYLE = "outputs = function().apply(inputs)"
_OLD_STYLE = "outputs = function()(*inputs)\noutputs = outputs if isinstance(outputs, tuple) else (outputs,)"
_BACKWARD = """
for number, output in enumerate(outputs):
    if f"gradient{{number}}" in ARRAYS:
        output.grad = ARRAYS[f"gradient{{number}}"]
chainer.backward([output for output in outputs if output.grad is not None])
for number, each in enumerate(inputs):
    if each.grad is not None:
        wrong += bad(f"gradient of input {{number}}", each.grad)
""".replace("{{", "{").replace("}}", "}")


def write_repro(folder: str, rank: int, culprit: Culprit) -> str:
    """Write ``repro.py`` and ``arrays.npz`` into ``folder`` (``rank-N`` below it for a rank other than 0).

    Returns:
        The script's path.

    Raises:
        ValueError: the operation is not one function of a graph, or holds something that cannot be written down.
        OSError: the folder cannot be written.
    """
    import numpy

    if culprit.function is None:
        raise ValueError(f"a bad {culprit.stage} needs no script: it is bad before anything is computed")
    function, old_style = _plain_function(culprit.function)
    settings, arrays = _state(function)
    arrays.update({f"input{n}": _host(each) for n, each in enumerate(culprit.inputs)})
    arrays.update({f"gradient{n}": _host(each) for n, each in enumerate(culprit.gradients) if each is not None})
    place = folder if rank == 0 else os.path.join(folder, f"rank-{rank}")
    os.makedirs(place, exist_ok=True)
    source, kind = _source_of(type(function))
    text = _SCRIPT.format(
        title=f"{culprit.label} gives numbers that are not finite in its {culprit.stage} pass.",
        source=source,
        settings=settings,
        kind=kind,
        count=len(culprit.inputs),
        call=_OLD_STYLE if old_style else _NEW_STYLE,
        backward=_BACKWARD if culprit.stage == "backward" else "",
    )
    numpy.savez(os.path.join(place, "arrays.npz"), **arrays)
    path = os.path.join(place, "repro.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    # A function may need what cannot be written down (a bound method, a library's handle): only trying tells.
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=_PATIENCE_S, env=_alone())
    if done.returncode != 1 or "not finite" not in done.stdout:
        os.unlink(path)
        raise ValueError(f"{culprit.label} needs more than arrays and numbers")
    return path


def _alone() -> Dict[str, str]:
    """The environment without what makes a process a rank of this one's launcher."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "OMPI_", "PMIX", "HYDI"))}


def _plain_function(function: Any) -> Tuple[Any, bool]:
    """The function as before it was applied; an old-style one without its adapter."""
    clone = cloned(function)
    wrapped = getattr(clone, "_function", None) if hasattr(clone, "_weak_function") else None
    return (clone, False) if wrapped is None else (wrapped, True)


def _state(function: Any) -> Tuple[str, Dict[str, Any]]:
    """The function's attributes: those that Python can write down, and arrays."""
    settings: List[str] = []
    arrays: Dict[str, Any] = {}
    for name, value in vars(function).items():
        if name.startswith("_chainerdoctor") or name in ("_node", "_owned_node"):
            continue
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            arrays[f"self.{name}"] = _host(value)
        elif _is_literal(value):
            settings.append(f"{name!r}: {value!r}")
        elif _is_chainer_s_own(value):
            settings.append(f"{name!r}: importlib.import_module({value.__module__!r}).{value.__qualname__}")
        # What else a function keeps belongs to its last run or to a library's handle, and is made anew.
    return "{" + ", ".join(settings) + "}", arrays


def _is_chainer_s_own(value: Any) -> bool:
    """A function or class of one of Chainer's modules, which the script can import."""
    module, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    return isinstance(module, str) and module.startswith("chainer.") and name.isidentifier() and callable(value)


def _is_literal(value: Any) -> bool:
    if isinstance(value, (tuple, list)):
        return all(_is_literal(each) for each in value)
    if isinstance(value, dict):
        return all(_is_literal(each) for pair in value.items() for each in pair)
    return value is None or type(value) in (bool, int, float, str, bytes) and value == value


def _source_of(kind: type) -> Tuple[str, str]:
    """Lines that make the class known, and the name by which the script calls it."""
    if kind.__module__.partition(".")[0] in ("chainer", "chainermn"):
        return f"from {kind.__module__} import {kind.__qualname__}", kind.__qualname__
    try:
        return textwrap.dedent(inspect.getsource(kind)), kind.__name__
    except (OSError, TypeError):
        raise ValueError(f"the source of {kind.__qualname__} is not to be had") from None


def _host(array: Any) -> Any:
    return array.get() if hasattr(array, "get") else array
