"""The form in which the modules of this package list messages that they know by their wording."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Tuple


@dataclass(frozen=True)
class Wording:
    """``pattern`` is searched in a line without prefix; ``stem`` is a literal without digits that every match contains.

    ``key`` names the groups by which equal events are counted apart (an Xid's number and GPU, say). Digits in a
    pattern's literals are forbidden: lines that differ only in digits are classified once (see ``recognise``).
    """

    event: str
    stem: str
    pattern: re.Pattern[str]
    key: Tuple[str, ...] = ()


def wording(event: str, stem: str, pattern: str, *key: str) -> Wording:
    """Compile one entry; the stem is compared in lower case."""
    return Wording(event, stem.lower(), re.compile(pattern), key)
