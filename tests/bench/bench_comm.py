"""profile-comm, and the stall autopsy that every command keeps ready, against the plain training on two ranks."""

from typing import Any, Dict

from tests.bench.instrumented import overhead

STALL = {"timeout_s": 60.0, "on_stall": "report"}


def measure() -> Dict[str, Any]:
    """Ratios of the median iteration."""
    figures: Dict[str, Any] = {}
    profiled = {"comm": {"clocks": True}, "stall": STALL}
    figures.update(overhead("profile-comm, two ranks", "ranks", profiled, "≤ 1.03"))
    figures.update(overhead("stall autopsy alone, two ranks", "ranks", {"stall": STALL}, "≤ 1.03"))
    return figures
