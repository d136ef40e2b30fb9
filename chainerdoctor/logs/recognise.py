"""Which kind of line this is. Lines that differ only in digits are looked at once; the answer is remembered."""

from __future__ import annotations

import re
from typing import Dict, List, Optional, Tuple

from chainerdoctor.logs import kernel, mpi, tracebacks
from chainerdoctor.logs.prefixes import Prefixed
from chainerdoctor.logs.wordings import Wording

#: Kinds of line that only count; their order is that of the counters in ``scan``.
UNKNOWN, NCCL, KERNEL, LAUNCHER, PYTHON = range(5)

_ALL: Tuple[Tuple[int, Wording], ...] = (
    *((KERNEL, w) for w in kernel.WORDINGS),
    *((LAUNCHER, w) for w in mpi.WORDINGS),
    *((PYTHON, w) for w in tracebacks.WORDINGS),
)


def _stems() -> Dict[str, List[Tuple[int, Wording]]]:
    by_stem: Dict[str, List[Tuple[int, Wording]]] = {}
    for kind, each in _ALL:
        by_stem.setdefault(each.stem, []).append((kind, each))
    return by_stem


_BY_STEM = _stems()
_STEMS = tuple(_BY_STEM)

#: A line for which any stem fits is asked for each of its wordings; how many characters of it are looked at.
LOOKED_AT = 2000


def candidates(text: str) -> List[Tuple[int, Wording]]:
    """The wordings whose stem the line contains, in the order of the tables."""
    low = text[:LOOKED_AT].lower()
    # A regular expression of all stems is four times as slow as asking for each: `in` runs at memory's speed.
    if not any(map(low.__contains__, _STEMS)):
        return []
    present = {stem for stem in _STEMS if stem in low}
    return [(kind, each) for kind, each in _ALL if each.stem in present]


def first_match(text: str, among: List[Tuple[int, Wording]]) -> Optional[Tuple[int, Wording, re.Match[str]]]:
    """The first wording that fits."""
    text = text[:LOOKED_AT]
    for kind, each in among:
        found = each.pattern.search(text)
        if found is not None:
            return kind, each, found
    return None


def plain_kind(line: Prefixed) -> int:
    """The kind of a line that says nothing of interest."""
    if line.kernel or kernel.PLAIN.match(line.text):
        return KERNEL
    if mpi.PLAIN.match(line.text):
        return LAUNCHER
    if tracebacks.PLAIN.match(line.text):
        return PYTHON
    if line.launcher in ("Open MPI", "srun"):
        return LAUNCHER
    return UNKNOWN
