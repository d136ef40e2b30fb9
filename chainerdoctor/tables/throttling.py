"""NVML's clock-event reasons. Data with its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Tuple

_NVML = "nvml.h, nvmlClocksEventReasons"


@dataclass(frozen=True)
class ThrottleReason:
    """One bit. ``harmful``: the hardware or driver protects the card; the others are idleness, settings or power caps
    that a card under full load reaches by design."""

    bit: int
    name: str
    harmful: bool
    source: str = _NVML


THROTTLE_REASONS: Tuple[ThrottleReason, ...] = (
    ThrottleReason(0x1, "idle", False),
    ThrottleReason(0x2, "application clocks", False),
    ThrottleReason(0x4, "software power cap", False),
    ThrottleReason(0x8, "hardware slowdown", True),
    ThrottleReason(0x10, "sync boost", False),
    ThrottleReason(0x20, "software thermal slowdown", True),
    ThrottleReason(0x40, "hardware thermal slowdown", True),
    ThrottleReason(0x80, "hardware power brake", True),
    ThrottleReason(0x100, "display clocks", False),
)


def harmful_reasons(bits: int) -> Tuple[str, ...]:
    """Names of the harmful reasons that are set, in the order of their bits."""
    return tuple(reason.name for reason in THROTTLE_REASONS if reason.harmful and bits & reason.bit)
