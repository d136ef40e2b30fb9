"""CuPy's Linux x86_64 wheels: which CUDA, Python and NumPy each takes, and whether it can use cuDNN.

The newest release of each series that Chainer 7.8.1 can use. Series 9 to 11 are listed for recognising what is
installed; a recommendation uses those with ``recommended``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

Version = Tuple[int, int]
_INDEX = "file names and metadata of the wheels on the package index"


@dataclass(frozen=True)
class NumpyRange:
    """The NumPy versions that a CuPy series declares; ``below`` is ``None`` where it names no upper end."""

    series: str
    at_least: str
    below: Optional[str]
    source: str = _INDEX


@dataclass(frozen=True)
class CupyWheel:
    """One wheel: CUDA and Python ranges are inclusive at both ends.

    ``cudnn`` is the major version of the cuDNN library that it loads, ``None`` if it can load none.
    ``brings_libraries`` is set where cuDNN and NCCL are inside the wheel.
    """

    package: str
    version: str
    cuda: Tuple[str, str]
    python: Tuple[Version, Version]
    cudnn: Optional[int]
    brings_libraries: bool
    recommended: bool
    source: str = _INDEX


NUMPY_RANGES: Tuple[NumpyRange, ...] = (
    NumpyRange("7.8", "1.9", None),
    NumpyRange("8.6", "1.15", None),
    NumpyRange("9.6", "1.17", "1.24"),
    NumpyRange("10.6", "1.18", "1.25"),
    NumpyRange("11.6", "1.20", "1.27"),
    NumpyRange("12.3", "1.20", "1.29"),
    NumpyRange("13.6", "1.22", "2.6"),
    NumpyRange("14.2", "2.0", "2.6"),
)


def _wheel(
    package: str,
    version: str,
    cuda: Tuple[str, str],
    python: Tuple[Version, Version],
    cudnn: Optional[int],
    *,
    brings_libraries: bool = False,
    recommended: bool = False,
) -> CupyWheel:
    return CupyWheel(f"cupy-{package}", version, cuda, python, cudnn, brings_libraries, recommended)


#: Best first within one CUDA version: cuDNN before none, then the newer.
CUPY_WHEELS: Tuple[CupyWheel, ...] = (
    _wheel("cuda80", "7.8.0", ("8.0", "8.0"), ((3, 5), (3, 8)), 7, brings_libraries=True),
    _wheel("cuda90", "7.8.0", ("9.0", "9.0"), ((3, 5), (3, 8)), 7, brings_libraries=True, recommended=True),
    _wheel("cuda90", "8.6.0", ("9.0", "9.0"), ((3, 5), (3, 9)), 7),
    _wheel("cuda91", "7.8.0", ("9.1", "9.1"), ((3, 5), (3, 8)), 7, brings_libraries=True, recommended=True),
    _wheel("cuda92", "7.8.0", ("9.2", "9.2"), ((3, 5), (3, 8)), 7, brings_libraries=True, recommended=True),
    _wheel("cuda92", "9.6.0", ("9.2", "9.2"), ((3, 6), (3, 9)), 7),
    _wheel("cuda100", "7.8.0", ("10.0", "10.0"), ((3, 5), (3, 8)), 7, brings_libraries=True, recommended=True),
    _wheel("cuda100", "9.6.0", ("10.0", "10.0"), ((3, 6), (3, 9)), 7),
    _wheel("cuda101", "7.8.0", ("10.1", "10.1"), ((3, 5), (3, 8)), 7, brings_libraries=True, recommended=True),
    _wheel("cuda101", "9.6.0", ("10.1", "10.1"), ((3, 6), (3, 9)), 8),
    _wheel("cuda102", "12.3.0", ("10.2", "10.2"), ((3, 8), (3, 12)), 8, recommended=True),
    _wheel("cuda110", "12.3.0", ("11.0", "11.0"), ((3, 8), (3, 12)), 8, recommended=True),
    _wheel("cuda111", "12.3.0", ("11.1", "11.1"), ((3, 8), (3, 12)), 8, recommended=True),
    _wheel("cuda11x", "13.6.0", ("11.2", "11.8"), ((3, 9), (3, 13)), 8, recommended=True),
    _wheel("cuda11x", "12.3.0", ("11.2", "11.8"), ((3, 8), (3, 12)), 8, recommended=True),
    _wheel("cuda12x", "13.6.0", ("12.0", "12.9"), ((3, 9), (3, 13)), 8, recommended=True),
    _wheel("cuda12x", "12.3.0", ("12.0", "12.9"), ((3, 8), (3, 12)), 8, recommended=True),
    _wheel("cuda12x", "14.2.0", ("12.0", "12.9"), ((3, 10), (3, 14)), None),
    _wheel("cuda12x", "11.6.0", ("12.0", "12.9"), ((3, 7), (3, 11)), None),
    _wheel("cuda13x", "13.6.0", ("13.0", "13.2"), ((3, 9), (3, 13)), None, recommended=True),
    _wheel("cuda13x", "14.2.0", ("13.0", "13.2"), ((3, 10), (3, 14)), None),
)


def numpy_range(cupy_version: str) -> Optional[NumpyRange]:
    """The NumPy range of a CuPy version's series, ``None`` if the series is not in the table."""
    series = ".".join(cupy_version.split(".")[:2])
    for row in NUMPY_RANGES:
        if row.series == series:
            return row
    return None
