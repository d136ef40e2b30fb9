"""What a patch is, and all of them by the module at whose import they are applied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Mapping, Tuple


@dataclass(frozen=True)
class Patch:
    """One thing that new versions broke, and how it is mended.

    ``name`` says what is mended, ``why`` what broke it and from which version on. ``needed`` looks at the versions
    that are there; where it says no, nothing is touched.
    """

    name: str
    why: str
    needed: Callable[[], bool]


@dataclass(frozen=True)
class Spelling(Patch):
    """An expression in Chainer's own source that is spelt another way while the module is loaded.

    The file on disk stays as it is, and so do its line numbers. ``times`` guards against another Chainer: if ``old``
    is not there exactly so often, the module is loaded untouched.
    """

    module: str = ""
    old: str = ""
    new: str = ""
    times: int = 1


@dataclass(frozen=True)
class StandIn(Patch):
    """Modules that Chainer imports and that are gone: seen only while ``modules`` are being imported."""

    modules: Tuple[str, ...] = ()
    make: Callable[[], Mapping[str, object]] = dict


@dataclass(frozen=True)
class Source(Patch):
    """A generated module whose whole source is replaced."""

    module: str = ""
    rewrite: Callable[[str], str] = str


@dataclass(frozen=True)
class AtStart(Patch):
    """Something to do once, before Chainer's first module is loaded; ``apply`` returns what it did."""

    apply: Callable[[], Tuple[str, ...]] = tuple


def version_of(distribution: str) -> Tuple[int, ...]:
    """The installed version's leading numbers, ``()`` if it is not installed: ``"2.5.0rc1"`` → ``(2, 5, 0)``.

    Read from the metadata: the package itself is not imported.
    """
    from importlib import metadata

    try:
        text = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ()
    return leading_numbers(text)


def leading_numbers(version: str) -> Tuple[int, ...]:
    """``"2.5.0rc1"`` → ``(2, 5, 0)``."""
    numbers = []
    for part in version.split("."):
        digits = ""
        for letter in part:
            if not letter.isdigit():
                break
            digits += letter
        if not digits:
            break
        numbers.append(int(digits))
        if digits != part:
            break
    return tuple(numbers)


def all_patches() -> Tuple[Patch, ...]:
    """Every patch. Imported here and not at the top: a program that never imports Chainer pays for none of it."""
    from chainerdoctor.compat import caffe, cuda_libraries, numpy_names, spellings, stand_ins

    return (
        *numpy_names.PATCHES,
        *cuda_libraries.PATCHES,
        *stand_ins.PATCHES,
        *spellings.PATCHES,
        *caffe.PATCHES,
    )


def by_module(patches: Tuple[Patch, ...]) -> Dict[str, Tuple[Patch, ...]]:
    """The patches that are applied while a module is loaded, by that module's name."""
    found: Dict[str, Tuple[Patch, ...]] = {}
    for patch in patches:
        if isinstance(patch, StandIn):
            modules = patch.modules
        elif isinstance(patch, (Spelling, Source)):
            modules = (patch.module,)
        else:
            continue
        for module in modules:
            found[module] = (*found.get(module, ()), patch)
    return found
