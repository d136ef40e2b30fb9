"""What every rank of ``allreduce-bench`` is told to do."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Optional, Tuple


@dataclass(frozen=True)
class Plan:
    """What every rank is to do. ``iterations`` 0 means: until the median is known or ``seconds`` are spent."""

    backend: str
    sizes: Tuple[int, ...]
    dtype: str
    iterations: int
    warmup: int
    seconds: float
    check: bool
    pairwise: bool
    model: Optional[str]

    def to_json(self) -> str:
        """One line that travels on the command line."""
        return json.dumps(self.__dict__)

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """The inverse of :meth:`to_json`."""
        raw = json.loads(text)
        return cls(**{**raw, "sizes": tuple(raw["sizes"])})
