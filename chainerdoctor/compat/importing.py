"""The import hook: idle until Chainer is imported, then each of its modules that needs it is mended as it is loaded."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import threading
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence, Tuple

if TYPE_CHECKING:  # annotations only: importing them would cost a program that never imports Chainer
    from chainerdoctor.compat.patches import Patch

#: The packages of the Chainer distribution.
_ROOTS = frozenset({"chainer", "chainermn", "chainerx", "onnx_chainer"})


class Finder(importlib.abc.MetaPathFinder):
    """Finds Chainer's modules as Python would, and gives those that need a patch a loader that applies it."""

    def __init__(self) -> None:
        self.applied: List[str] = []
        self._patches: Optional[Dict[str, Tuple[Patch, ...]]] = None
        # Two threads may import chainer and chainermn at once: the second has to wait until all is ready.
        self._starting = threading.RLock()

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        """``None`` (leave it to the others) for whatever is not Chainer's or needs nothing."""
        if fullname.partition(".")[0] not in _ROOTS:
            return None
        with self._starting:
            if self._patches is None:
                self._patches = self._start()
            patches = self._patches.get(fullname)
        if not patches:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        # A loader of another kind (a zip, someone's own hook) is left alone: its source is not ours to read.
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        spec.loader = Loader(fullname, spec.loader.path, patches, self.applied)
        return spec

    def _start(self) -> Dict[str, Tuple[Patch, ...]]:
        """Apply what has to be there before Chainer's first line; the rest by module, without what is not needed."""
        from chainerdoctor.compat.patches import AtStart, all_patches, by_module

        self._patches = {}  # a patch that imports something of Chainer's must not start this again
        needed = tuple(patch for patch in all_patches() if patch.needed())
        for patch in needed:
            if isinstance(patch, AtStart):
                self.applied.extend(patch.apply())
        return by_module(needed)


class Loader(importlib.machinery.SourceFileLoader):
    """Loads one module of Chainer's with its patches."""

    def __init__(self, fullname: str, path: str, patches: Tuple[Patch, ...], applied: List[str]) -> None:
        super().__init__(fullname, path)
        self._patches = patches
        self._applied = applied

    def get_code(self, fullname: str) -> Optional[CodeType]:
        """The code of the mended source; Python's own cached bytecode where no source changes."""
        from chainerdoctor.compat.patches import Source, Spelling

        source = before = None
        for patch in self._patches:
            if not isinstance(patch, (Source, Spelling)):
                continue
            if source is None:
                source = before = self.get_data(self.path).decode("utf-8")
            if isinstance(patch, Source):
                source = patch.rewrite(source)
            elif source.count(patch.old) == patch.times:
                source = source.replace(patch.old, patch.new)
            else:
                continue  # another Chainer, which may not need it
            self._note(patch)
        if source is None or source == before:
            return super().get_code(fullname)
        code: CodeType = self.source_to_code(source.encode("utf-8"), self.path)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run the module; modules that are gone have their stand-ins meanwhile."""
        from chainerdoctor.compat.patches import StandIn

        shown: Dict[str, Optional[ModuleType]] = {}
        for patch in self._patches:
            if isinstance(patch, StandIn):
                for name, stand_in in patch.make().items():
                    shown.setdefault(name, sys.modules.get(name))
                    sys.modules[name] = stand_in  # type: ignore[assignment]
                self._note(patch)
        try:
            super().exec_module(module)
        finally:
            for name, real in shown.items():
                if real is None:
                    sys.modules.pop(name, None)
                else:
                    sys.modules[name] = real

    def _note(self, patch: Patch) -> None:
        if patch.name not in self._applied:
            self._applied.append(patch.name)
