"""Numbers whose sum over the ranks is known, and how far a right result may be from it."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

#: Element i of rank r is ((31·i + 7·r) mod 13) − 6: small integers without a pattern that a shifted copy would keep.
PERIOD = 13
#: Bits of the significand, the hidden one included (IEEE 754).
SIGNIFICAND_BITS = {"float16": 11, "float32": 24, "float64": 53}


def period(rank: int) -> List[int]:
    """The numbers of one rank, once; they repeat."""
    return [(31 * i + 7 * rank) % PERIOD - 6 for i in range(PERIOD)]


def period_sum(ranks: int) -> List[int]:
    """Their sum over the ranks, by Python's integers."""
    return [sum(column) for column in zip(*(period(rank) for rank in range(ranks)))]


def numbers(numpy: Any, count: int, rank: int, dtype: str) -> Any:
    """The numbers of one rank."""
    return numpy.resize(numpy.array(period(rank), dtype=dtype), count)


def exact_sum(numpy: Any, count: int, ranks: int) -> Any:
    """The sum over the ranks, float64, by integers: nothing of the library that is measured takes part."""
    return numpy.resize(numpy.array(period_sum(ranks), dtype="float64"), count)


def bound(dtype: str, ranks: int) -> float:
    """How far a right sum may be off, in any order of summation: 0 while every partial sum is an integer that the type
    holds, else (n−1)·u·Σ|x| with u = 2^−bits (Higham, "Accuracy and Stability of Numerical Algorithms", 4.2)."""
    most = 6 * ranks
    bits = SIGNIFICAND_BITS[dtype]
    return 0.0 if most <= 2**bits else (ranks - 1) * 2.0**-bits * most


def wrong(numpy: Any, result: Any, expected: Any, allowed: float) -> Tuple[int, Optional[int]]:
    """Number of elements that are off by more than ``allowed`` (NaN counts), and the place of the first."""
    off = ~(numpy.abs(result.astype("float64") - expected) <= allowed)
    count = int(off.sum())
    return count, int(off.argmax()) if count else None
