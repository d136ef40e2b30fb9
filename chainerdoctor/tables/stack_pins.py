"""The versions that sets are pinned to beside Chainer and CuPy, each with its reason and source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

from chainerdoctor.tables.cupy_wheels import Version

_TRIED = "installed and imported"


@dataclass(frozen=True)
class NumpyPin:
    """The NumPy for a range of Pythons, for CuPy below or from a major version."""

    python: Tuple[Version, Version]
    cupy_major: Tuple[int, int]
    numpy: str
    reason: str
    source: str = _TRIED


#: First match wins; ``cupy_major`` 0 stands for a set without CuPy.
NUMPY_PINS: Tuple[NumpyPin, ...] = (
    NumpyPin(
        ((3, 8), (3, 11)),
        (0, 13),
        "1.23.5",
        "the newest on which every case of Chainer's test suite that can pass does; 1.24 removed names it uses",
    ),
    NumpyPin(((3, 12), (3, 12)), (7, 12), "1.26.4", "CuPy 12 was built before NumPy 2; 1.26 is the newest before it"),
    NumpyPin(
        ((3, 12), (3, 13)),
        (0, 14),
        "2.5.5",
        "Python 3.12 and 3.13 take NumPy 2; Chainer needs the compat layer with it",
    ),
)


@dataclass(frozen=True)
class LibraryPin:
    """A wheel of an NVIDIA library for a CUDA major version, and why that version."""

    cuda_major: int
    requirement: str
    reason: str
    source: str


CUDNN_PINS: Tuple[LibraryPin, ...] = (
    LibraryPin(
        11, "nvidia-cudnn-cu11==8.9.6.50", "CuPy 12 and 13 load libcudnn.so.8; cuDNN 9 has another name", _TRIED
    ),
    LibraryPin(
        12, "nvidia-cudnn-cu12==8.9.7.29", "CuPy 12 and 13 load libcudnn.so.8; cuDNN 9 has another name", _TRIED
    ),
)

NCCL_PINS: Tuple[LibraryPin, ...] = (
    LibraryPin(
        11, "nvidia-nccl-cu11==2.21.5", "the newest NCCL for CUDA 11; every rank must run the same", "package index"
    ),
    LibraryPin(
        12,
        "nvidia-nccl-cu12==2.28.9",
        "past the known hangs and corruptions (the last: < 2.28.9); every rank must run the same",
        "NVIDIA/nccl release notes; NVIDIA/nccl#286",
    ),
    LibraryPin(
        13,
        "nvidia-nccl-cu13==2.28.9",
        "past the known hangs and corruptions (the last: < 2.28.9); every rank must run the same",
        "NVIDIA/nccl release notes; NVIDIA/nccl#286",
    ),
)
