"""Modules that Chainer imports and that are gone; what is here does for Chainer's own uses and is shown to it alone."""

from __future__ import annotations

import importlib
import re
import sys
from types import ModuleType
from typing import Dict, List, Mapping, Tuple

from chainerdoctor.compat.patches import StandIn, leading_numbers, version_of


def _no_pkg_resources() -> bool:
    # An old setuptools has one that fails on Python 3.12 (pkgutil.ImpImporter). Chainer imports it in any case, so
    # trying costs nothing.
    try:
        importlib.import_module("pkg_resources")
    except Exception:  # whatever it is, Chainer would fail with it
        return True
    return False


def _no_numpy_distutils() -> bool:
    if sys.version_info >= (3, 12):
        return True
    # NumPy 2.3 dropped it; before that it imports distutils.msvccompiler, which setuptools 74 dropped.
    return version_of("numpy") >= (2, 3) or version_of("setuptools") >= (74,)


class ResolutionError(Exception):
    """As in pkg_resources."""


class DistributionNotFound(ResolutionError):
    """As in pkg_resources."""


class VersionConflict(ResolutionError):
    """As in pkg_resources."""


class Distribution:
    """The part of pkg_resources' that Chainer reads: ``version``."""

    def __init__(self, version: str) -> None:
        self.version = version


_NAME = re.compile(r"\s*([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?")
_CLAUSE = re.compile(r"([<>=!~]=?)\s*([\w.*+!-]+)")


def get_distribution(requirement: str) -> Distribution:
    """The installed distribution that a requirement names.

    Raises:
        DistributionNotFound: it is not installed.
    """
    from importlib import metadata

    found = _NAME.match(requirement)
    name = found.group(1) if found else requirement
    try:
        return Distribution(metadata.version(name))
    except metadata.PackageNotFoundError:
        raise DistributionNotFound(name) from None


def require(*requirements: str) -> List[Distribution]:
    """Check that requirements are met.

    Raises:
        DistributionNotFound, VersionConflict: one is not.
    """
    met = []
    for requirement in requirements:
        distribution = get_distribution(requirement)
        name = _NAME.match(requirement)
        for operator, version in _CLAUSE.findall(requirement[name.end() if name else 0 :]):
            if not _fits(distribution.version, operator, version):
                raise VersionConflict(distribution, requirement)
        met.append(distribution)
    return met


class WorkingSet:
    """As in pkg_resources, with all that is installed."""

    require = staticmethod(require)


def _fits(have: str, operator: str, wanted: str) -> bool:
    one, other = _comparable(have), _comparable(wanted)
    if operator == "~=":
        return (
            one >= other and leading_numbers(have)[: len(leading_numbers(wanted)) - 1] == leading_numbers(wanted)[:-1]
        )
    outcomes: Dict[str, bool] = {
        # PEP 440: neither 8.0rc1 is "< 8.0" nor 8.0.post1 "> 8.0", so only the numbers count.
        "<": one[0] < other[0],
        "<=": one <= other,
        ">": one[0] > other[0],
        ">=": one >= other,
        "==": one == other,
        "!=": one != other,
    }
    return outcomes[operator]


def _comparable(version: str) -> Tuple[Tuple[int, ...], int]:
    """Numbers without trailing zeros, then -1 before, 0 at and 1 after the release."""
    numbers = leading_numbers(version)
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    before = re.search(r"\d\.?(a|b|rc|dev)\d*", version) is not None
    return numbers, -1 if before else int("post" in version)


def _pkg_resources() -> Mapping[str, object]:
    module = ModuleType("pkg_resources", "A stand-in by chainerdoctor.compat for what Chainer uses of it.")
    for public in (ResolutionError, DistributionNotFound, VersionConflict, WorkingSet, get_distribution, require):
        setattr(module, public.__name__, public)
    return {"pkg_resources": module}


def _numpy_distutils() -> Mapping[str, object]:
    # Empty on purpose: Chainer calls it on macOS only, where chainerdoctor does not run, but imports it everywhere.
    return {
        "numpy.distutils": ModuleType("numpy.distutils"),
        "numpy.distutils.system_info": ModuleType("numpy.distutils.system_info"),
    }


PATCHES = (
    StandIn(
        name="pkg_resources",
        why="setuptools 82 dropped pkg_resources, and Python 3.12's virtual environments bring no setuptools",
        needed=_no_pkg_resources,
        modules=("chainer._environment_check", "chainer.testing.helper", "chainer.testing.doctest_helper"),
        make=_pkg_resources,
    ),
    StandIn(
        name="numpy.distutils",
        why="gone from Python 3.12 and NumPy 2.3 on, and broken beside setuptools 74 and newer",
        needed=_no_numpy_distutils,
        modules=("chainer._environment_check",),
        make=_numpy_distutils,
    ),
)
