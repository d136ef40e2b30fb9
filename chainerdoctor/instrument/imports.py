"""Calls back when the program has imported a package, so that nothing is imported earlier than the program does it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import threading
from types import ModuleType
from typing import Any, Callable, Dict, List, Optional, Sequence

Then = Callable[[ModuleType], None]


def when_imported(name: str, then: Then) -> None:
    """Call ``then(module)`` right after the package ``name`` was imported; at once if it was already."""
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        then(module)
        return
    finder = next((found for found in sys.meta_path if isinstance(found, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.waiting.setdefault(name, []).append(then)


class _Finder(importlib.abc.MetaPathFinder):
    """Asks the other finders, and gives what they find a loader that calls back afterwards."""

    def __init__(self) -> None:
        self.waiting: Dict[str, List[Then]] = {}
        self._asking = threading.local()

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        if fullname not in self.waiting or getattr(self._asking, "now", False):
            return None
        self._asking.now = True
        try:
            for finder in list(sys.meta_path):
                find = getattr(finder, "find_spec", None)
                spec: Optional[importlib.machinery.ModuleSpec] = (
                    find(fullname, path, target) if find is not None and finder is not self else None
                )
                if spec is not None:
                    break
            else:
                return None
        finally:
            self._asking.now = False
        if spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self, fullname)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads as the loader that was found would, and is gone afterwards: the module keeps its own."""

    def __init__(self, real: Any, finder: _Finder, name: str) -> None:
        self._real = real
        self._finder = finder
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        made: Optional[ModuleType] = self._real.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._real
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        self._real.exec_module(module)
        for then in self._finder.waiting.pop(self._name, []):
            then(module)
