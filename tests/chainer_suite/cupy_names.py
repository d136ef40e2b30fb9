"""Every name of CuPy's that Chainer uses, looked up under compat, without a GPU or a driver.

Run with the Python of an environment that holds Chainer 7.8.1 and CuPy::

    python -m tests.chainer_suite.cupy_names

Prints what does not resolve, and exits with 1 if that is more than cuDNN's own names on a CuPy that has no cuDNN.
"""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from typing import Dict, Iterator, List, Optional, Set

import chainerdoctor.compat

#: Chainer tries the new place first and this one after it.
_FALLBACKS = ("cupy.util.PerformanceWarning",)
#: Through which names Chainer's modules reach CuPy's, as in ``from chainer.backends import cuda``.
_THROUGH_CHAINER = ("cuda.cupy", "chainer.backends.cuda.cupy", "chainer.cuda.cupy", "backends.cuda.cupy")
#: CuPy 14 dropped it; Chainer asks whether it is there before it uses it.
_CUDNN = ("cupy.cudnn", "cupy.cuda.cudnn", "cupy.cuda.libs.cudnn", "cupy_backends.cuda.libs.cudnn")


def used_names(folder: Path) -> Dict[str, List[str]]:
    """Dotted name below ``cupy`` or ``cupyx`` → the places that use it."""
    found: Dict[str, List[str]] = {}
    for file in sorted(folder.rglob("*.py")):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        aliases = _aliases(tree)
        for node in ast.walk(tree):
            for name in _names(node, aliases):
                found.setdefault(name, []).append(f"{file.relative_to(folder.parent)}:{getattr(node, 'lineno', 0)}")
    return found


def _aliases(tree: ast.AST) -> Dict[str, str]:
    """Local name → what it is of CuPy's, from imports and from assignments such as ``cudnn = cuda.cudnn``."""
    # Chainer calls the array module `xp` throughout: NumPy or CuPy, so each such name has to be in CuPy too.
    aliases = {"cupy": "cupy", "cupyx": "cupyx", "xp": "cupy"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                if name.asname and name.name.split(".")[0] in ("cupy", "cupyx", "cupy_backends"):
                    aliases[name.asname] = name.name
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("cupy", "cupyx"):
            for name in node.names:
                aliases[name.asname or name.name] = f"{node.module}.{name.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            text = _dotted(node.value)
            if text == "cuda.cudnn":
                aliases[node.targets[0].id] = "cupy.cudnn"
    return aliases


def _names(node: ast.AST, aliases: Dict[str, str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (n.name for n in node.names if n.name.split(".")[0] in ("cupy", "cupyx"))
    elif (
        isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").split(".")[0] in ("cupy", "cupyx")
    ):
        yield from (f"{node.module}.{n.name}" for n in node.names)
    elif isinstance(node, ast.Attribute):
        text = _dotted(node)
        if text is None:
            return
        for prefix in _THROUGH_CHAINER:
            if text.startswith(prefix + "."):
                yield "cupy." + text[len(prefix) + 1 :]
                return
        head, _, rest = text.partition(".")
        if head in aliases and rest:
            yield f"{aliases[head]}.{rest}"


def _dotted(node: ast.AST) -> Optional[str]:
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def resolves(name: str) -> bool:
    """Whether a dotted name leads somewhere, with modules imported on the way as Chainer does."""
    parts = name.split(".")
    thing: object = importlib.import_module(parts[0])
    for count, part in enumerate(parts[1:], 2):
        try:
            thing = getattr(thing, part)
        except (AttributeError, ImportError):
            try:
                thing = importlib.import_module(".".join(parts[:count]))
            except ImportError:
                return False
    return True


def main() -> int:
    """Scan, resolve, report."""
    import chainer
    import chainermn
    import cupy
    from chainer.backends import cuda

    print(
        f"CuPy {cupy.__version__}, NumPy {importlib.import_module('numpy').__version__}, Python {sys.version.split()[0]}"
    )
    print(f"chainer.backends.cuda: available {cuda.available}, cudnn_enabled {cuda.cudnn_enabled}")
    if not cuda.available:
        print(f"  because: {cuda._resolution_error!r}")
    print("applied: " + ", ".join(name for name in chainerdoctor.compat.applied() if not name.startswith("numpy.")))
    names: Dict[str, List[str]] = {}
    for package in (chainer, chainermn):
        for name, places in used_names(Path(package.__file__).parent).items():
            names.setdefault(name, []).extend(places)
    missing: Set[str] = {name for name in names if not resolves(name)}
    unexpected = []
    for name in sorted(missing):
        kind = "no cuDNN" if name.startswith(_CUDNN) else "fallback" if name in _FALLBACKS else "MISSING"
        if kind == "MISSING":
            unexpected.append(name)
        print(f"{kind:<9}{name}  {names[name][0]}")
    print(f"{len(names)} names, {len(missing)} do not resolve, {len(unexpected)} of them unexpected")
    if not cuda.cudnn_enabled:
        # Plain Chainer raises NameError here; with cuDNN the answer needs a device.
        print(
            "should_use_cudnn_tensor_core:", cuda.should_use_cudnn_tensor_core(importlib.import_module("numpy").float16)
        )
    return int(bool(unexpected) or not cuda.available)


if __name__ == "__main__":
    sys.exit(main())
