"""What goes wrong: in single calls of any of the libraries, and in NCCL on single ranks."""

from __future__ import annotations

import difflib
import functools
import math
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, FrozenSet, Iterable, List, Optional, Sequence, Tuple

from chainerdoctor.simulate.links import Setter, choice, select
from chainerdoctor.simulate.values import NVML_ERRORS, ValueProblem, parse_error, parse_time_s

SECTIONS = ("call", "rank", "ranks")
_MOST_RANKS = 256  # SIM_RANKS in csrc/scenario.h
_YES_NO = {"yes": 1, "no": 0}

#: NCCL's result codes (nccl.h, ncclResult_t).
NCCL_ERRORS = {
    "unhandled_cuda_error": 1,
    "system_error": 2,
    "internal_error": 3,
    "invalid_argument": 4,
    "invalid_usage": 5,
    "remote_error": 6,
}
#: CUDA runtime errors that a scenario may name (driver_types.h, cudaError).
CUDA_ERRORS = {
    "cudaErrorInvalidValue": 1,
    "cudaErrorMemoryAllocation": 2,
    "cudaErrorInitializationError": 3,
    "cudaErrorInsufficientDriver": 35,
    "cudaErrorDevicesUnavailable": 46,
    "cudaErrorNoDevice": 100,
    "cudaErrorInvalidDevice": 101,
    "cudaErrorECCUncorrectable": 214,
    "cudaErrorPeerAccessUnsupported": 217,
    "cudaErrorNvlinkUncorrectable": 220,
    "cudaErrorIllegalAddress": 700,
    "cudaErrorLaunchFailure": 719,
    "cudaErrorSystemNotReady": 802,
    "cudaErrorUnknown": 999,
}


@functools.lru_cache(maxsize=None)
def simulated_calls() -> FrozenSet[str]:
    """Names of the functions that the simulated libraries have."""
    names: List[str] = []
    for path in sorted(Path(__file__).with_name("csrc").rglob("*.[ch]")):
        names += re.findall(
            r"\b((?:nvml|nccl|cuda|cu|cublas|curand|nvrtc)[A-Z]\w*)\(", path.read_text(encoding="utf-8")
        )
        names += re.findall(
            r"[A-Z_0-9]+\(((?:nvml|nccl|cuda|cu|cublas|curand|nvrtc)[A-Z]\w*)[,)]", path.read_text(encoding="utf-8")
        )
    return frozenset(names)


@dataclass
class CallFault:
    """One ``[call …]`` section; ``gpu`` and ``rank`` are -1 for any."""

    call: str
    gpu: int = -1
    rank: int = -1
    from_s: float = -math.inf
    at: int = 0
    error: int = 0
    crash: int = 0
    flip: int = 0
    delay_s: float = 0.0
    block_s: float = 0.0


@dataclass
class RankFault:
    """One ``[rank …]`` section."""

    version: int = 0
    absent: int = 0
    delay_s: float = 0.0
    fail_at: int = 0
    fail_with: int = NCCL_ERRORS["system_error"]
    flip_at: int = 0
    flip_element: int = 0
    flip_bit: int = 0


@dataclass
class Faults:
    """All faults of a scenario."""

    calls: List[CallFault] = field(default_factory=list)
    ranks: Dict[int, RankFault] = field(default_factory=dict)
    between: Dict[Tuple[int, int], float] = field(default_factory=dict)

    def setter(self, head: Sequence[str], gpus: int) -> Optional[Setter]:
        """What a section of this module accepts; None if the section is not of this module.

        Raises:
            ValueProblem: of this module, but it names no part that there is.
        """
        kind = head[0] if head else ""
        if kind == "call":
            return self._call(head[1:], gpus)
        if kind == "rank" and len(head) == 2:
            return self._rank(_ranks(head[1]))
        if kind == "ranks" and len(head) == 2:
            return self._between(head[1])
        if kind in SECTIONS:
            raise ValueProblem("write [rank 2] or [ranks 0-1]")
        return None

    def _call(self, words: Sequence[str], gpus: int) -> Setter:
        if not words or len(words) % 2 == 0:
            raise ValueProblem("write [call FUNCTION], [call FUNCTION gpu 1] or [call FUNCTION rank 2]")
        _check_call(words[0])
        fault = CallFault(words[0])
        for what, number in zip(words[1::2], words[2::2]):
            if what == "gpu":
                fault.gpu = _one(select(number, gpus))
            elif what == "rank":
                fault.rank = _one(_ranks(number))
            else:
                raise ValueProblem(f"{what!r}: only 'gpu N' and 'rank N' narrow a call")
        self.calls.append(fault)

        def put(key: str, value: str) -> None:
            if key == "error":
                fault.error = parse_error(value, _errors_of(fault.call))
            elif key == "at":
                fault.at = _positive(value)
            elif key in ("crash", "flip"):
                setattr(fault, key, choice(value, _YES_NO, "answer"))
            elif key == "block":
                fault.block_s = math.inf if value == "forever" else parse_time_s(value)
            else:
                setattr(fault, f"{key}_s", parse_time_s(value))

        return Setter(("error", "from", "at", "delay", "block", "crash", "flip"), put)

    def _rank(self, ranks: Sequence[int]) -> Setter:
        chosen = [self.ranks.setdefault(rank, RankFault()) for rank in ranks]

        def put(key: str, value: str) -> None:
            for fault in chosen:
                if key == "joins":
                    fault.absent = 1 - choice(value, _YES_NO, "answer")
                elif key == "delay":
                    fault.delay_s = parse_time_s(value)
                elif key == "fail_with":
                    fault.fail_with = parse_error(value, NCCL_ERRORS)
                elif key in ("flip_element", "flip_bit"):
                    setattr(fault, key, _positive(value, least=0))
                else:
                    setattr(fault, key, _positive(value))

        return Setter(("joins", "version", "delay", "fail_at", "fail_with", "flip_at", "flip_element", "flip_bit"), put)

    def _between(self, where: str) -> Setter:
        match = re.fullmatch(r"(\d+)-(\d+)", where)
        if match is None or match.group(1) == match.group(2):
            raise ValueProblem(f"{where!r} is no pair of ranks; write 0-1")
        a, b = sorted(_ranks(f"{match.group(1)},{match.group(2)}"))

        def put(key: str, value: str) -> None:
            self.between[a, b] = parse_time_s(value)

        return Setter(("delay",), put)

    def as_plan(self) -> Iterable[str]:
        """The statements for csrc/scenario.c."""
        for c in self.calls:
            times = f"{c.delay_s:.17g} {c.block_s:.17g}"
            yield f"fault {c.call} {c.gpu} {c.rank} {c.from_s:.17g} {c.at} {c.error} {c.crash} {times} {c.flip}"
        for rank, r in sorted(self.ranks.items()):
            fail = f"{r.fail_at} {r.fail_with}"
            yield f"rank {rank} {r.version} {r.absent} {r.delay_s:.17g} {fail} {r.flip_at} {r.flip_element} {r.flip_bit}"
        for (a, b), delay_s in sorted(self.between.items()):
            yield f"between {a} {b} {delay_s:.17g}"


def _check_call(name: str) -> None:
    known = simulated_calls()
    found = any(call.startswith(name[:-1]) for call in known) if name.endswith("*") else name in known
    if not found:
        near = difflib.get_close_matches(name, sorted(known), 1)
        raise ValueProblem(f"no simulated library has {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))


def _errors_of(call: str) -> Dict[str, int]:
    if call.startswith("nccl"):
        return NCCL_ERRORS
    return NVML_ERRORS if call.startswith("nvml") else CUDA_ERRORS


def _ranks(text: str) -> List[int]:
    try:
        return select(text, _MOST_RANKS)
    except ValueProblem:
        raise ValueProblem(f"{text!r} chooses no rank; write *, 2, 0-3 or 0,2, below {_MOST_RANKS}") from None


def _one(numbers: Sequence[int]) -> int:
    if len(numbers) != 1:
        raise ValueProblem("a call is narrowed to one number; leave it out for all")
    return numbers[0]


def _positive(text: str, least: int = 1) -> int:
    if not re.fullmatch(r"\d+", text) or int(text) < least:
        raise ValueProblem(f"{text!r} is not a whole number from {least} on")
    return int(text)
