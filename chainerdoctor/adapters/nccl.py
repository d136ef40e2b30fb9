"""NCCL's own numbers."""

from __future__ import annotations


def version_text(code: int) -> str:
    """``ncclGetVersion``'s number as text.

    Before 2.9 the code is major × 1000 + minor × 100 + patch (2804 is 2.8.4), from 2.9 on major × 10000 (22105 is
    2.21.5); source: NCCL_VERSION in nccl.h.
    """
    base = 1000 if code < 10000 else 10000
    return f"{code // base}.{code % base // 100}.{code % 100}"
