"""The twin of the devices' work on the CPU: a checked product by NumPy."""

from __future__ import annotations

import time

from chainerdoctor.facts.workload import CpuProduct

ORDER = 384
REPEATS = 5
#: Rows that Python checks by itself: all of them would take seconds.
CHECKED_ROWS = 8


def multiply() -> CpuProduct:
    """A float32 product of small integers, its first rows checked with Python's integers.

    Raises:
        ImportError: no NumPy.
    """
    import numpy

    rng = numpy.random.RandomState(1)
    left = rng.randint(-2, 3, (ORDER, ORDER))
    right = rng.randint(-2, 3, (ORDER, ORDER))
    a, b = left.astype(numpy.float32), right.astype(numpy.float32)
    best_s = float("inf")
    for _ in range(REPEATS):
        began_s = time.perf_counter()
        result = a @ b
        best_s = min(best_s, time.perf_counter() - began_s)
    columns = list(zip(*right.tolist()))
    wrong = 0
    for row, told in zip(left[:CHECKED_ROWS].tolist(), result[:CHECKED_ROWS].tolist()):
        wrong += sum(sum(x * y for x, y in zip(row, column)) != each for column, each in zip(columns, told))
    return CpuProduct(ORDER, wrong, 2 * ORDER**3 / best_s / 1e9)
