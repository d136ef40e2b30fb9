"""Files that are given together: found, parsed, their imports of each other followed, and turned into facts."""

from __future__ import annotations

import ast
import os
import re
from typing import Callable, Dict, Iterable, Iterator, List, Optional, Tuple

from chainerdoctor.facts import Fact
from chainerdoctor.facts.script import (
    ScriptCall,
    ScriptClass,
    ScriptFile,
    ScriptKept,
    ScriptName,
    ScriptSetting,
    ScriptSuppression,
    ScriptUnread,
)
from chainerdoctor.scripts.resolve import Resolver
from chainerdoctor.scripts.source import Source, UnreadableError, read_source
from chainerdoctor.scripts.values import Module, RawCall, Value
from chainerdoctor.scripts.walk import Walker

Progress = Callable[[int, int], None]

#: Libraries whose calls and names become facts.
WATCHED_ROOTS = frozenset(
    {"chainer", "chainermn", "cupy", "cupyx", "cupy_backends", "multiprocessing", "cv2", "mpi4py"}
)
#: Libraries whose names, but not calls, become facts.
NAMED_ROOTS = frozenset({"numpy"})
#: Methods whose calls become facts whatever they are called on: training loops are written with them.
WATCHED_METHODS = frozenset(
    # fmt: off
    (
        "backward",
        "unchain_backward",
        "cleargrads",
        "cleargrad",
        "zerograds",
        "zero_grads",
        "update",
        "setup",
        "extend",
        "add_hook",
        "add_argument",
        "to_gpu",
        "to_device",
        "use_cleargrads",
        "accumulate_grads",
        "clip_grads",
        "compute_grads_norm",
        "weight_decay",
        "loss_scaling",
        "set_loss_scale",
        "use_fp32_update",
        "allreduce_grad",
        "multi_node_mean_grad",
        "bcast_data",
        "allreduce",
        "allreduce_obj",
        "multi_node_mean",
        "Allreduce",
        "bcast",
        "bcast_obj",
        "gather",
        "gather_obj",
        "allgather",
        "scatter",
        "alltoall",
        "barrier",
        "split",
        "finalize",
    )
    # fmt: on
)
_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules", "site-packages", "build", "dist"})
_SUPPRESSION = re.compile(r"#\s*chainerdoctor:\s*ignore(?:\[([^\]\n]*)\])?", re.IGNORECASE)


def find_sources(paths: Iterable[str]) -> List[str]:
    """Files to read: those named, and every ``.py`` and ``.ipynb`` below the folders named, sorted.

    Raises:
        FileNotFoundError: a path does not exist.
    """
    found: Dict[str, None] = {}
    for path in paths:
        if os.path.isdir(path):
            for folder, inner, files in os.walk(path):
                inner[:] = sorted(d for d in inner if not d.startswith(".") and d not in _SKIPPED_FOLDERS)
                found.update(
                    (os.path.normpath(os.path.join(folder, name)), None)
                    for name in sorted(files)
                    if name.endswith((".py", ".ipynb"))
                )
        elif os.path.exists(path):
            found[os.path.normpath(path)] = None
        else:
            raise FileNotFoundError(path)
    return list(found)


def read_project(paths: List[str], progress: Optional[Progress] = None) -> List[Tuple[str, Fact]]:
    """(path, fact) for everything that the files say. One that cannot be read becomes :class:`ScriptUnread`."""
    return Project(paths).facts(progress)


class Project:
    """The files of one call. Modules are walked when they are first imported, so that names follow."""

    def __init__(self, paths: List[str]) -> None:
        self.paths = paths
        self.modules: Dict[str, Module] = {}
        self.sources: Dict[str, Source] = {}
        self.unread: Dict[str, ScriptUnread] = {}
        self.by_name: Dict[str, List[str]] = {}
        for path in paths:
            parts = _module_parts(path)
            for start in range(len(parts)):
                self.by_name.setdefault(".".join(parts[start:]), []).append(path)

    def facts(self, progress: Optional[Progress]) -> List[Tuple[str, Fact]]:
        for number, path in enumerate(self.paths):
            self.module(path)
            if progress is not None:
                progress(number + 1, len(self.paths))
        calls = [call for module in self.modules.values() for call in module.calls]
        for number, call in enumerate(calls):
            call.number = number + 1
        resolver = Resolver()
        resolver.link(calls)
        made: List[Tuple[str, Fact]] = []
        for path in self.paths:
            if path in self.unread:
                made.append((path, self.unread[path]))
            else:
                made += [(path, fact) for fact in self._facts(path, resolver)]
        return made

    def module(self, path: str) -> Optional[Module]:
        """The walked module of a file, ``None`` if it cannot be read."""
        if path in self.modules:
            return self.modules[path]
        if path in self.unread:
            return None
        parts = _module_parts(path)
        module = Module(path, ".".join(_package_parts(path, parts)) or "__main__", path.endswith("__init__.py"))
        try:
            source = read_source(path)
            self.modules[path] = module  # before the walk: modules may import each other in a circle
            self.sources[path] = source
            Walker(module, lambda name: self.imported(module, name)).walk(source.tree)
        except UnreadableError as error:
            self.unread[path] = ScriptUnread(path, error.line, error.reason, error.python2)
        except RecursionError:
            self.modules.pop(path, None)
            self.unread[path] = ScriptUnread(path, 0, "nested too deeply to be followed")
        return self.modules.get(path)

    def imported(self, importer: Module, name: str) -> Value:
        """The value of an imported absolute name: a given file, or a name from outside."""
        top = name.split(".")[0]
        if top not in WATCHED_ROOTS and top not in NAMED_ROOTS:
            path = self._nearest(importer.path, self.by_name.get(name, ()))
            if path is not None and path != importer.path:
                importer.uses[path] = None
                module = self.module(path)
                return None if module is None else ("m", module)
        importer.imports[name] = None
        return ("q", name)

    def _nearest(self, path: str, candidates: Iterable[str]) -> Optional[str]:
        """The file that an import means: the one that shares the longest folder, none if two are equally near."""
        ranked = sorted(((len(os.path.commonprefix([_folder(path), _folder(c)])), c) for c in candidates), reverse=True)
        if not ranked or (len(ranked) > 1 and ranked[0][0] == ranked[1][0]):
            return None
        return ranked[0][1]

    def _facts(self, path: str, resolver: Resolver) -> Iterator[Fact]:
        module, source = self.modules[path], self.sources[path]
        yield ScriptFile(
            path,
            source.form,
            source.text.count("\n") + 1,
            tuple(module.imports),
            tuple(module.uses),
            source.cells_left_out,
            source.sha256,
        )
        if "chainerdoctor" in source.text:
            yield from _suppressions(path, source.text)
        for call in module.calls:
            fact = _call(path, call, resolver)
            if fact is not None:
                yield fact
        for setting in module.settings:
            targets = resolver.names(setting.target)
            if any(_watched(name) or name.startswith("os.environ") for name in targets):
                node = setting.node
                yield ScriptSetting(
                    path,
                    getattr(node, "lineno", 0),
                    getattr(node, "col_offset", 0) + 1,
                    targets,
                    resolver.operand(setting.value),
                    setting.function.name if setting.function is not None else "",
                    resolver.guards(setting.function, setting.guards),
                )
        for node, holder, kept, value, scope, loop in module.kept:
            line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0) + 1
            how = "append" if isinstance(node, ast.Call) else "+="
            yield ScriptKept(path, line, column, holder, kept, resolver.operand(value), how, scope, loop)
        for (name, guards), places in module.mentions.items():
            root = name.split(".")[0].replace("import ", "")
            if root in WATCHED_ROOTS or root in NAMED_ROOTS:
                yield ScriptName(path, name, tuple(places), tuple([resolver.condition(each) for each in guards]))
        for klass in module.classes:
            yield ScriptClass(path, klass.node.lineno, klass.name, resolver.outside_bases(klass), tuple(klass.methods))


def _call(path: str, call: RawCall, resolver: Resolver) -> Optional[ScriptCall]:
    callee = call.callee
    leaf = callee[2] if callee is not None and callee[0] == "a" else None
    names = resolver.names(callee)
    if leaf not in WATCHED_METHODS and not any(_watched(name) or name.startswith("os.environ.") for name in names):
        return None
    receiver = resolver.operand(callee[1]) if callee is not None and callee[0] == "a" else resolver.operand(None)
    return ScriptCall(
        path,
        call.node.lineno,
        call.node.col_offset + 1,
        call.number,
        names,
        call.function.name if call.function is not None else "",
        receiver,
        tuple([resolver.operand(each) for each in call.args]),
        {name: resolver.operand(each) for name, each in call.keywords.items()},
        resolver.guards(call.function, call.guards),
        tuple([resolver.condition(each) for each in call.contexts]),
        call.loops,
        call.open,
        _said(call.node),
    )


def _said(node: ast.Call) -> str:
    inner = node.func.value if isinstance(node.func, ast.Attribute) else None
    return inner.id if isinstance(inner, ast.Name) else ""


def _watched(name: str) -> bool:
    return name.split(".", 1)[0].rstrip("()") in WATCHED_ROOTS


def _suppressions(path: str, text: str) -> Iterator[ScriptSuppression]:
    for number, line in enumerate(text.split("\n"), 1):
        found = _SUPPRESSION.search(line)
        if found is not None:
            codes = tuple(code.strip().upper() for code in (found[1] or "").split(",") if code.strip())
            yield ScriptSuppression(path, number, codes)


def _folder(path: str) -> str:
    return os.path.dirname(path) + "/"


def _module_parts(path: str) -> List[str]:
    bare = os.path.splitext(path)[0]
    parts = [part for part in bare.replace("\\", "/").split("/") if part not in ("", ".", "..")]
    return parts[:-1] if parts and parts[-1] == "__init__" else parts


def _package_parts(path: str, parts: List[str]) -> List[str]:
    """The parts of the path that are packages (folders with ``__init__.py``), and the module itself."""
    folder = os.path.dirname(path)
    depth = 0 if path.endswith("__init__.py") else 1
    while depth < len(parts) and os.path.isfile(os.path.join(folder, "__init__.py")):
        depth += 1
        folder = os.path.dirname(folder)
    return parts[len(parts) - depth :] if depth else parts[-1:]
