"""Values of a scenario: amounts with units, times, and what they do over time.

A value is a sum of terms, joined by ``+``::

    4GiB                     a constant
    cuda                     what the simulated CUDA has allocated on this GPU (bytes)
    step(AMOUNT, AT)         AMOUNT from the time AT on
    ramp(AMOUNT, PERIOD)     rises from 0 to AMOUNT in PERIOD, falls to 0, again
    grow(AMOUNT, TIME)       rises from 0 to AMOUNT in TIME and stays
    spike(AMOUNT, PERIOD, WIDTH)   AMOUNT for WIDTH at the start of each PERIOD
    error(CODE)  error(CODE, AT)   the call that reads this value fails (from AT on); CODE is a number or NVML's name
    unsupported              the same as error(NOT_SUPPORTED)

Times need a unit (``us ms s min h``). Bytes: ``B KiB MiB GiB TiB`` (none means bytes). Power: ``W mW``. ``%``, ``C`` and
``MHz`` may be written or left out. Flags: ``on off yes no``. Throttle reasons: ``none``, a number, or names joined by ``|``.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

_NUMBER = re.compile(r"\s*([-+]?(?:0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?))\s*([A-Za-z%/]*)\s*")

_TIME_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_UNITS: Dict[str, Dict[str, float]] = {
    "bytes": {"": 1, "B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40},
    "percent": {"": 1, "%": 1},
    "celsius": {"": 1, "C": 1},
    "megahertz": {"": 1, "MHz": 1},
    "milliwatts": {"W": 1000, "mW": 1},
    "millijoules": {"": 1, "mJ": 1, "J": 1000},
    "lanes": {"": 1},
    "kibibytes_s": {"": 1, "KiB/s": 1, "MiB/s": 1024},
    "megabytes_s": {"": 1, "MB/s": 1, "GB/s": 1000},
    "number": {"": 1},
    "flag": {"": 1},
    "throttle": {"": 1},
}
_FLAGS = {"on": 1.0, "yes": 1.0, "off": 0.0, "no": 0.0}

#: Names of NVML's clock-event bits (nvml.h, nvmlClocksEventReasons).
THROTTLE_BITS = {
    "none": 0,
    "idle": 0x1,
    "app_clocks": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal": 0x20,
    "hw_thermal": 0x40,
    "hw_power_brake": 0x80,
    "display_clocks": 0x100,
}

#: NVML's error codes by name (nvml.h, nvmlReturn_t).
NVML_ERRORS = {
    "UNINITIALIZED": 1,
    "INVALID_ARGUMENT": 2,
    "NOT_SUPPORTED": 3,
    "NO_PERMISSION": 4,
    "NOT_FOUND": 6,
    "INSUFFICIENT_SIZE": 7,
    "INSUFFICIENT_POWER": 8,
    "DRIVER_NOT_LOADED": 9,
    "TIMEOUT": 10,
    "IRQ_ISSUE": 11,
    "LIBRARY_NOT_FOUND": 12,
    "FUNCTION_NOT_FOUND": 13,
    "CORRUPTED_INFOROM": 14,
    "GPU_IS_LOST": 15,
    "RESET_REQUIRED": 16,
    "OPERATING_SYSTEM": 17,
    "LIB_RM_VERSION_MISMATCH": 18,
    "IN_USE": 19,
    "MEMORY": 20,
    "NO_DATA": 21,
    "UNKNOWN": 999,
}

_ARGUMENTS = {"step": 2, "ramp": 2, "grow": 2, "spike": 3}
_MOST_TERMS = 6  # SIM_TERMS in csrc/scenario.h


class ValueProblem(ValueError):
    """A text that is no value; the message says why."""


@dataclass(frozen=True)
class Value:
    """A value over time: a constant, terms (kind, amount, seconds…), and an error code from a time on (0: no error)."""

    base: float
    terms: Tuple[Tuple[str, Tuple[float, ...]], ...] = ()
    error: int = 0
    error_from_s: float = -math.inf

    def as_plan(self) -> str:
        """The words that csrc/scenario.c reads."""
        words: List[str] = [_exact(self.base)]
        for kind, numbers in self.terms:
            words.append(kind)
            words.extend(_exact(number) for number in numbers)
        if self.error:
            words += ["error", str(self.error), _exact(self.error_from_s)]
        return " ".join(words)


def _exact(number: float) -> str:
    return f"{number:.17g}"


def parse_amount(text: str, unit: str) -> float:
    """An amount in the key's own unit (bytes, mW…).

    Raises:
        ValueProblem: no number, or a unit that does not fit.
    """
    word = text.strip()
    if unit == "flag" and word in _FLAGS:
        return _FLAGS[word]
    if unit == "throttle" and not word[:1].isdigit():
        return float(_throttle_bits(word))
    match = _NUMBER.fullmatch(text)
    if match is None:
        wanted = {"flag": "on or off", "throttle": "bits or names joined by |"}.get(unit, "a number")
        raise ValueProblem(f"{word!r} is not {wanted}")
    digits, suffix = match.groups()
    scale = _UNITS[unit].get(suffix)
    if scale is None:
        known = ", ".join(name or "none" for name in _UNITS[unit])
        raise ValueProblem(
            f"{word!r} needs a unit ({known})" if not suffix else f"unit {suffix!r} is not one of {known}"
        )
    hexadecimal = digits.lower().lstrip("+-").startswith("0x")
    return (float(int(digits, 16)) if hexadecimal else float(digits)) * scale


def _throttle_bits(text: str) -> int:
    bits = 0
    for name in text.split("|"):
        bit = THROTTLE_BITS.get(name.strip())
        if bit is None:
            raise ValueProblem(f"{name.strip()!r} is no throttle reason; there are {', '.join(THROTTLE_BITS)}")
        bits |= bit
    return bits


def parse_time_s(text: str) -> float:
    """A time with its unit, in seconds.

    Raises:
        ValueProblem: no number or no unit of time.
    """
    match = _NUMBER.fullmatch(text)
    if match is None or match.group(2) not in _TIME_UNITS:
        raise ValueProblem(f"{text.strip()!r} is not a time with a unit ({', '.join(_TIME_UNITS)})")
    seconds = float(match.group(1)) * _TIME_UNITS[match.group(2)]
    if seconds < 0:
        raise ValueProblem(f"the time {text.strip()!r} is negative")
    return seconds


def parse_error(text: str, names: Optional[Dict[str, int]] = None) -> int:
    """An error code from its number or name; ``names`` defaults to NVML's.

    Raises:
        ValueProblem: neither.
    """
    known = NVML_ERRORS if names is None else names
    word = text.strip()
    if re.fullmatch(r"[1-9]\d*", word):
        return int(word)
    for name in (word, word.replace("NVML_ERROR_", "", 1)):
        if name in known:
            return known[name]
    raise ValueProblem(f"{word!r} is no error code; give a number or one of {', '.join(known)}")


def parse_value(text: str, unit: str) -> Value:
    """A value over time (see the module).

    Raises:
        ValueProblem: with what is wrong and where.
    """
    base, error, error_from_s = 0.0, 0, -math.inf
    terms: List[Tuple[str, Tuple[float, ...]]] = []
    for term in _split_terms(text):
        call = re.fullmatch(r"(\w+)\s*\((.*)\)", term)
        if term == "unsupported":
            error = NVML_ERRORS["NOT_SUPPORTED"]
        elif term == "cuda":
            if unit != "bytes":
                raise ValueProblem("'cuda' stands for bytes; this key is no amount of memory")
            terms.append(("cuda", ()))
        elif call is None:
            base += parse_amount(term, unit)
        elif call.group(1) == "error":
            arguments = call.group(2).split(",")
            error = parse_error(arguments[0])
            if len(arguments) > 2:
                raise ValueProblem("error takes a code and, if need be, a time: error(GPU_IS_LOST, 60s)")
            if len(arguments) == 2:
                error_from_s = parse_time_s(arguments[1])
        else:
            terms.append(_parse_term(call.group(1), call.group(2).split(","), unit))
    if len(terms) > _MOST_TERMS:
        raise ValueProblem(f"{len(terms)} terms that vary; at most {_MOST_TERMS} are possible")
    return Value(base, tuple(terms), error, error_from_s)


def _split_terms(text: str) -> List[str]:
    terms = [term.strip() for term in re.split(r"\+(?![^(]*\))", text)]
    if not all(terms):
        raise ValueProblem(f"{text.strip()!r} has an empty term" if text.strip() else "no value")
    return terms


def _parse_term(kind: str, arguments: List[str], unit: str) -> Tuple[str, Tuple[float, ...]]:
    wanted = _ARGUMENTS.get(kind)
    if wanted is None:
        raise ValueProblem(f"{kind!r} is not one of {', '.join(_ARGUMENTS)}, error")
    if len(arguments) != wanted:
        raise ValueProblem(f"{kind} takes {wanted} arguments, not {len(arguments)}")
    times = tuple(parse_time_s(argument) for argument in arguments[1:])
    if kind != "step" and not all(times):
        raise ValueProblem(f"{kind} needs times above 0")
    return kind, (parse_amount(arguments[0], unit), *times)
