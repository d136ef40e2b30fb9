"""Timing of two things in turn, so that a machine whose speed drifts slows both alike."""

import resource
import statistics
import subprocess
import time
from typing import Any, Callable, Dict, List, Sequence

Timed = Callable[[], float]


def command(words: Sequence[str], **options: Any) -> Timed:
    """Wall seconds of one run of a command; its output is dropped.

    Raises:
        RuntimeError: it failed, so that its time means nothing.
    """

    def run() -> float:
        began = time.perf_counter()
        done = subprocess.run(list(words), capture_output=True, text=True, **options)
        took = time.perf_counter() - began
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr[-500:]}")
        return took

    return run


def paired(ours: Timed, peer: Timed, runs: int, warmup: int = 1) -> Dict[str, Any]:
    """Run A B, B A, A B … and give medians, the median of the ratios pair by pair, and the spread of the ratios."""
    mine: List[float] = []
    theirs: List[float] = []
    for number in range(-warmup, runs):
        if number % 2:
            b, a = peer(), ours()
        else:
            a, b = ours(), peer()
        if number >= 0:
            mine.append(a)
            theirs.append(b)
    ratios = sorted(a / b for a, b in zip(mine, theirs))
    return {
        "ours_s": statistics.median(mine),
        "peer_s": statistics.median(theirs),
        "ratio": statistics.median(ratios),
        "ratio_min": ratios[0],
        "ratio_max": ratios[-1],
        "runs": runs,
    }


def peak_memory_mib() -> float:
    """Peak resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
