"""Which NVIDIA driver a CUDA toolkit needs (Linux). Data with its source, and pure look-ups."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Dict, Optional, Tuple

_RELEASE_NOTES = 'CUDA Toolkit release notes, table "CUDA Toolkit and Corresponding Driver Versions"'
_COMPATIBILITY = "docs.nvidia.com/deploy/cuda-compatibility, minor version compatibility"


@dataclass(frozen=True)
class ToolkitDriver:
    """The oldest driver with which a toolkit's release has all its features."""

    toolkit: str
    release: str
    driver: str
    source: str = _RELEASE_NOTES


@dataclass(frozen=True)
class FamilyFloor:
    """The oldest driver on which any toolkit of a major version runs at all (with limited features)."""

    major: int
    driver: str
    source: str = _COMPATIBILITY


#: Oldest first. Where one row of the release notes names several updates, each has its own row here.
TOOLKIT_DRIVERS: Tuple[ToolkitDriver, ...] = (
    ToolkitDriver("9.0", "GA", "384.81"),
    ToolkitDriver("9.1", "GA", "390.46"),
    ToolkitDriver("9.2", "GA", "396.26"),
    ToolkitDriver("9.2", "update 1", "396.37"),
    ToolkitDriver("10.0", "GA", "410.48"),
    ToolkitDriver("10.1", "GA", "418.39"),
    ToolkitDriver("10.2", "GA", "440.33"),
    ToolkitDriver("11.0", "RC", "450.36.06"),
    ToolkitDriver("11.0", "update 2", "450.51.05"),
    ToolkitDriver("11.0", "update 3", "450.51.06"),
    ToolkitDriver("11.1", "GA", "455.23"),
    ToolkitDriver("11.1", "update 1", "455.32"),
    ToolkitDriver("11.2", "GA", "460.27.03"),
    ToolkitDriver("11.2", "update 1", "460.32.03"),
    ToolkitDriver("11.2", "update 2", "460.32.03"),
    ToolkitDriver("11.3", "GA", "465.19.01"),
    ToolkitDriver("11.4", "GA", "470.42.01"),
    ToolkitDriver("11.4", "update 1", "470.57.02"),
    ToolkitDriver("11.4", "update 2", "470.57.02"),
    ToolkitDriver("11.4", "update 3", "470.82.01"),
    ToolkitDriver("11.4", "update 4", "470.82.01"),
    ToolkitDriver("11.5", "GA", "495.29.05"),
    ToolkitDriver("11.6", "GA", "510.39.01"),
    ToolkitDriver("11.6", "update 1", "510.47.03"),
    ToolkitDriver("11.6", "update 2", "510.47.03"),
    ToolkitDriver("11.7", "GA", "515.43.04"),
    ToolkitDriver("11.7", "update 1", "515.48.07"),
    ToolkitDriver("11.8", "GA", "520.61.05"),
    ToolkitDriver("12.0", "GA", "525.60.13"),
    ToolkitDriver("12.0", "update 1", "525.85.12"),
    ToolkitDriver("12.1", "GA", "530.30.02"),
    ToolkitDriver("12.2", "GA", "535.54.03"),
    ToolkitDriver("12.2", "update 1", "535.86.09"),
    ToolkitDriver("12.2", "update 2", "535.104.05"),
    ToolkitDriver("12.3", "GA", "545.23.06"),
    ToolkitDriver("12.3", "update 1", "545.23.08"),
    ToolkitDriver("12.4", "GA", "550.54.14"),
    ToolkitDriver("12.4", "update 1", "550.54.15"),
    ToolkitDriver("12.5", "GA", "555.42.02"),
    ToolkitDriver("12.5", "update 1", "555.42.06"),
    ToolkitDriver("12.6", "GA", "560.28.03"),
    ToolkitDriver("12.6", "update 1", "560.35.03"),
    ToolkitDriver("12.6", "update 2", "560.35.03"),
    ToolkitDriver("12.6", "update 3", "560.35.05"),
    ToolkitDriver("12.8", "GA", "570.26"),
    ToolkitDriver("12.8", "update 1", "570.124.06"),
    ToolkitDriver("12.9", "GA", "575.51.03"),
    ToolkitDriver("12.9", "update 1", "575.57.08"),
    ToolkitDriver("13.0", "GA", "580.65.06"),
    ToolkitDriver("13.0", "update 1", "580.82.07"),
    ToolkitDriver("13.0", "update 2", "580.95.05"),
    ToolkitDriver("13.1", "GA", "590.44.01"),
    ToolkitDriver("13.1", "update 1", "590.48.01"),
    ToolkitDriver("13.2", "GA", "595.45.04"),
    ToolkitDriver("13.2", "update 1", "595.58.03"),
    ToolkitDriver("13.2", "update 2", "595.71.05"),
)

#: Toolkits up to 10.2 have no such rule: there the exact row above applies.
FAMILY_FLOORS: Tuple[FamilyFloor, ...] = (
    FamilyFloor(11, "450.80.02"),
    FamilyFloor(12, "525"),
    FamilyFloor(13, "580"),
)


@functools.lru_cache(maxsize=4096)
def version_key(version: str) -> Tuple[int, ...]:
    """A dotted version as numbers, for comparing: ``"550.54.14"`` → ``(550, 54, 14)``.

    Raises:
        ValueError: a part is not a number.
    """
    return tuple(int(part) for part in version.strip().split("."))


@functools.lru_cache(maxsize=4096)
def toolkits() -> Tuple[str, ...]:
    """Every toolkit in the table, oldest first (``"9.0"`` … ``"13.2"``)."""
    seen: Dict[str, None] = {}
    for row in TOOLKIT_DRIVERS:
        seen.setdefault(row.toolkit)
    return tuple(seen)


def exact_driver(toolkit: str) -> Optional[str]:
    """The driver of the toolkit's first release, or ``None`` if the toolkit is not in the table."""
    for row in TOOLKIT_DRIVERS:
        if row.toolkit == toolkit:
            return row.driver
    return None


def oldest_driver(toolkit: str) -> Optional[str]:
    """The oldest driver that runs programs built with this toolkit, minor version compatibility included.

    ``None`` if the toolkit's major version is not in the tables.
    """
    major = version_key(toolkit)[0]
    for floor in FAMILY_FLOORS:
        if floor.major == major:
            return floor.driver
    return exact_driver(toolkit)


def newest_toolkit(driver: str) -> Optional[str]:
    """The newest toolkit that this driver fully supports; ``None`` if it is older than every row.

    This is what ``nvidia-smi`` prints as "CUDA Version".
    """
    have = version_key(driver)
    fitting = [row.toolkit for row in TOOLKIT_DRIVERS if version_key(row.driver) <= have]
    return fitting[-1] if fitting else None
