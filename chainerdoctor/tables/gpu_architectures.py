"""GPU architectures, the toolkits that know them, and what the cards are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

_NCCL = "NCCL makefiles/common.mk; CUDA Toolkit release notes"
_NOTES = "CUDA Toolkit release notes, deprecated and dropped architectures"
#: Not confirmed from a primary source: good enough to choose a package by, not to complain about a machine.
UNCONFIRMED = "general knowledge, not confirmed from a primary source"
_CARDS = "developer.nvidia.com/cuda-gpus"


@dataclass(frozen=True)
class Architecture:
    """One compute capability; ``last`` is ``None`` while the newest toolkit still knows it."""

    capability: Tuple[int, int]
    name: str
    first: str
    last: Optional[str]
    source: str


@dataclass(frozen=True)
class Card:
    """A product name as people type it, in capitals and without "NVIDIA", "Tesla" or "GeForce"."""

    name: str
    capability: Tuple[int, int]
    source: str = _CARDS


ARCHITECTURES: Tuple[Architecture, ...] = (
    Architecture((3, 0), "Kepler", "5.0", "10.2", _NOTES),
    Architecture((3, 5), "Kepler", "5.0", "11.8", _NOTES),
    Architecture((3, 7), "Kepler", "6.5", "11.8", _NOTES),
    Architecture((5, 0), "Maxwell", "6.5", "12.9", _NOTES),
    Architecture((5, 2), "Maxwell", "7.0", "12.9", _NOTES),
    Architecture((6, 0), "Pascal", "8.0", "12.9", _NCCL),
    Architecture((6, 1), "Pascal", "8.0", "12.9", _NCCL),
    Architecture((7, 0), "Volta", "9.0", "12.9", _NCCL),
    Architecture((7, 5), "Turing", "10.0", None, _NCCL),
    Architecture((8, 0), "Ampere", "11.0", None, _NCCL),
    Architecture((8, 6), "Ampere", "11.1", None, UNCONFIRMED),
    Architecture((8, 7), "Ampere", "11.4", None, UNCONFIRMED),
    Architecture((8, 9), "Ada", "11.8", None, UNCONFIRMED),
    Architecture((9, 0), "Hopper", "11.8", None, _NCCL),
    Architecture((10, 0), "Blackwell", "12.8", None, _NCCL),
    Architecture((10, 3), "Blackwell", "12.9", None, UNCONFIRMED),
    Architecture((11, 0), "Blackwell", "13.0", None, _NCCL),
    Architecture((12, 0), "Blackwell", "12.8", None, _NCCL),
    Architecture((12, 1), "Blackwell", "12.9", None, UNCONFIRMED),
)

CARDS: Tuple[Card, ...] = (
    Card("K40", (3, 5)),
    Card("K80", (3, 7)),
    Card("M40", (5, 2)),
    Card("M60", (5, 2)),
    Card("GTX 980", (5, 2)),
    Card("GTX TITAN X", (5, 2)),
    Card("P100", (6, 0)),
    Card("P4", (6, 1)),
    Card("P40", (6, 1)),
    Card("GTX 1070", (6, 1)),
    Card("GTX 1080", (6, 1)),
    Card("GTX 1080 TI", (6, 1)),
    Card("TITAN XP", (6, 1)),
    Card("V100", (7, 0)),
    Card("TITAN V", (7, 0)),
    Card("T4", (7, 5)),
    Card("RTX 2070", (7, 5)),
    Card("RTX 2080", (7, 5)),
    Card("RTX 2080 TI", (7, 5)),
    Card("TITAN RTX", (7, 5)),
    Card("QUADRO RTX 6000", (7, 5)),
    Card("QUADRO RTX 8000", (7, 5)),
    Card("A30", (8, 0)),
    Card("A100", (8, 0)),
    Card("A800", (8, 0)),
    Card("A10", (8, 6)),
    Card("A16", (8, 6)),
    Card("A40", (8, 6)),
    Card("RTX A4000", (8, 6)),
    Card("RTX A5000", (8, 6)),
    Card("RTX A6000", (8, 6)),
    Card("RTX 3060", (8, 6)),
    Card("RTX 3070", (8, 6)),
    Card("RTX 3080", (8, 6)),
    Card("RTX 3090", (8, 6)),
    Card("L4", (8, 9)),
    Card("L40", (8, 9)),
    Card("L40S", (8, 9)),
    Card("RTX 6000 ADA", (8, 9)),
    Card("RTX 4070", (8, 9)),
    Card("RTX 4080", (8, 9)),
    Card("RTX 4090", (8, 9)),
    Card("H100", (9, 0)),
    Card("H200", (9, 0)),
    Card("H800", (9, 0)),
    Card("GH200", (9, 0)),
    Card("B200", (10, 0)),
    Card("GB200", (10, 0)),
    Card("B300", (10, 3)),
    Card("GB300", (10, 3)),
    Card("RTX 5070", (12, 0)),
    Card("RTX 5080", (12, 0)),
    Card("RTX 5090", (12, 0)),
    Card("RTX PRO 6000", (12, 0)),
    Card("GB10", (12, 1)),
)


def architecture(capability: Tuple[int, int]) -> Optional[Architecture]:
    """The row of a compute capability, ``None`` if it is not in the table."""
    for row in ARCHITECTURES:
        if row.capability == capability:
            return row
    return None
