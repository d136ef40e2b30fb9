"""Which line of the program is behind a call: the innermost frame that is no library's."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Dict, Optional, Tuple

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep
#: Parts of ChainerMN that call communicators for the program, by the file that they are in.
_VIA = {
    "scatter.py": "scatter_dataset",
    "empty_dataset.py": "create_empty_dataset",
    "multi_node_evaluator.py": "the multi-node evaluator",
    "observation_aggregator.py": "ObservationAggregator",
    "_multi_node_snapshot.py": "multi_node_snapshot",
    "checkpoint.py": "the multi-node checkpointer",
    "allreduce_persistent.py": "AllreducePersistent",
    "batch_normalization.py": "MultiNodeBatchNormalization",
    "multi_node_iterator.py": "the multi-node iterator",
    "_multi_node_iterator.py": "the multi-node iterator",
    "synchronized_iterator.py": "the synchronized iterator",
}
_known: Dict[str, bool] = {}
_shortened: Dict[str, str] = {}


def is_library(file: str) -> bool:
    """Whether a file is Python's, an installed package's, or chainerdoctor's own."""
    known = _known.get(file)
    if known is None:
        known = _known[file] = (
            "site-packages" in file or "dist-packages" in file or file.startswith(("<", _HERE, _LIBRARY))
        )
    return known


def place_of(frame: Optional[FrameType]) -> Tuple[str, str]:
    """``train.py:88`` and the part of ChainerMN between there and ``frame``, if any."""
    via = ""
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file):
            return f"{short(file)}:{line_of(frame)}", via
        if "chainermn" in file:
            via = _VIA.get(os.path.basename(file), via)
        frame = frame.f_back
    return "", via


def line_of(frame: FrameType) -> int:
    """The line that a frame is in; an instruction that the compiler added has none, and counts to the first one."""
    line: Optional[int] = frame.f_lineno
    return frame.f_code.co_firstlineno if line is None else line


def short(file: str) -> str:
    """A file as seen from the working directory, where it is below that; otherwise its name."""
    known = _shortened.get(file)
    if known is None:
        here = os.getcwd() + os.sep
        known = _shortened[file] = file[len(here) :] if file.startswith(here) else os.path.basename(file)
    return known


def caller(depth: int) -> Optional[FrameType]:
    """The frame ``depth`` calls above the caller's."""
    return sys._getframe(depth + 1)
