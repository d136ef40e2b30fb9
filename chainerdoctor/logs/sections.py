"""The form of parsers for outputs that span many lines (tables and the like)."""

from __future__ import annotations

import abc
from typing import List

from chainerdoctor.facts import Fact

#: Facts kept of one section; the largest machine has 16 GPUs, the largest listing a few hundred.
MAX_FACTS = 4096


class Section(abc.ABC):
    """Gets its first line and those after it until it refuses one; then ``close`` and ``facts``.

    ``path`` and ``line`` (of the first line) are set by the caller before the first ``feed``.
    """

    kind = ""

    def __init__(self) -> None:
        self.path = ""
        self.line = 0
        self.facts: List[Fact] = []

    @abc.abstractmethod
    def feed(self, text: str, number: int) -> bool:
        """Take a line without launcher prefix; false if it is no longer the section's."""

    @abc.abstractmethod
    def close(self) -> None:
        """The section has ended: turn what was gathered into facts."""
