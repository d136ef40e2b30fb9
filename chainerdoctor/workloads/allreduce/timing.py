"""How often to repeat, and the quantiles of what was timed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Callable, List, Sequence

#: A batch of calls lasts about so long; between batches the ranks agree whether to go on.
BATCH_S = 0.01
FEWEST = 7
MOST = 20_000
#: Half of the 95 % interval of the median, as a share of it, at which it is known well enough.
GOOD_ENOUGH = 0.02


@dataclass(frozen=True)
class Timed:
    """Sorted seconds of the timed calls, and what the warm-up cost."""

    times_s: Sequence[float]
    warmup: int
    first_s: float

    def quantile(self, share: float) -> float:
        """The nearest-rank quantile."""
        return self.times_s[min(len(self.times_s) - 1, int(share * len(self.times_s)))]

    @property
    def variation(self) -> float:
        """Standard deviation over mean."""
        mean = sum(self.times_s) / len(self.times_s)
        return math.sqrt(sum((t - mean) ** 2 for t in self.times_s) / len(self.times_s)) / mean if mean else 0.0


def median_interval(times_s: Sequence[float]) -> float:
    """Half of the median's 95 % interval as a share of it, from order statistics (binomial, normal approximation)."""
    count = len(times_s)
    half = 0.98 * math.sqrt(count)
    low, high = max(0, int(count / 2 - half)), min(count - 1, int(math.ceil(count / 2 + half)))
    middle = times_s[count // 2]
    return (times_s[high] - times_s[low]) / 2 / middle if middle else 0.0


def repeat(
    batch: Callable[[int], List[float]], agree: Callable[[int], int], warmup: int, iterations: int, budget_s: float
) -> Timed:
    """Time calls in batches. ``batch(k)`` gives the seconds of k calls; ``agree(n)`` gives every rank rank 0's number.

    With ``iterations`` 0 the calls go on until the median is known to 2 % or ``budget_s`` is spent.
    """
    first = batch(1)[0]
    if warmup > 1:
        first_s, warm = first, batch(warmup - 1)
        usual = sorted(warm)[len(warm) // 2]
    else:
        first_s = usual = first
    if iterations:
        return Timed(sorted(batch(iterations)), warmup, first_s)
    times: List[float] = []
    until_s = time.perf_counter() + budget_s
    # All ranks take the same number of calls: rank 0's clock decides.
    size = agree(max(1, min(1000, int(BATCH_S / max(usual, 1e-7)))))
    while True:
        times += batch(size)
        times.sort()
        enough = len(times) >= FEWEST and (median_interval(times) < GOOD_ENOUGH or len(times) >= MOST)
        if agree(int(enough or (time.perf_counter() > until_s and len(times) >= 3))):
            return Timed(times, warmup, first_s)
