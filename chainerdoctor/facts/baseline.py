"""How a snapshot differs from another that was taken when all was well."""

from __future__ import annotations

from dataclasses import dataclass

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class Deviation(Fact):
    """``subject`` ("NVIDIA driver") is ``seen`` here and ``expected`` in the baseline; "absent" where one has none."""

    subject: str
    seen: str
    expected: str


@dataclass(frozen=True)
class Compared(Fact):
    """How many subjects were compared with a baseline: says that "no deviation" was looked for."""

    subjects: int
    baseline: str
