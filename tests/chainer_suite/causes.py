"""Why a case of Chainer's own tests cannot pass on new versions: each was read in its traceback.

A case is matched by the end of its file's path and a part of its name and of its error; what matches no row is an
unexplained failure and fails ``make test-chainer``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Cause:
    """One reason for which cases fail; ``in_chainer`` says whether Chainer itself (not its test) is at fault."""

    file: str
    case: str
    error: str
    cause: str
    in_chainer: bool = False


CAUSES: Tuple[Cause, ...] = (
    Cause(
        "array_tests/test_pad_sequence.py",
        "test_forward_cpu",
        "OverflowError",
        "the test itself computes dtype(-1) of an unsigned type, which NumPy 2 refuses (line 74); F.pad_sequence passes",
    ),
    Cause(
        "math_tests/test_det.py",
        "test_det_scaling_cpu",
        "TypeError",
        "the test itself calls float() of an array with one dimension, which NumPy 2.5 refuses (line 92)",
    ),
    Cause(
        "loss_tests/test_softmax_cross_entropy.py",
        "test_forward",
        "((300000, 2), None)",
        "the test's expected value overflows: its float16 sum stays float16 in NumPy 2 (line 189); Chainer's is right",
    ),
)


def cause_of(case: str, error: str) -> Optional[Cause]:
    """The row that explains a failed case, ``None`` if none does."""
    path, _, name = case.partition("::")
    for cause in CAUSES:
        if path.endswith(cause.file) and cause.case in name and cause.error in error:
            return cause
    return None
