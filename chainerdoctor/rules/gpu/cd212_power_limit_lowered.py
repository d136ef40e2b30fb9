"""CD212: power limit lowered."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.gpu import (
    GpuClocks,
)
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import everywhere
from chainerdoctor.snapshot import Snapshot

_SHARE = 0.95  # makers round the enforced limit; less than this is somebody's setting


def lowered(fact: GpuClocks) -> Optional[Tuple[str, str, str]]:
    """The limit beside the default, where both are known."""
    if fact.power_limit_mw is None or not fact.power_default_mw:
        return None
    if fact.power_limit_mw >= _SHARE * fact.power_default_mw:
        return None
    return "power limit", f"{fact.power_limit_mw / 1000:.0f} W", f"{fact.power_default_mw / 1000:.0f} W"


@rule("CD212", Severity.WARNING, needs=(GpuClocks,), since="0.1")
def power_limit_lowered(snapshot: Snapshot) -> Iterator[Finding]:
    """The power limit of a GPU is set well below the card's default.

    Why it hurts: under load the clocks fall until the limit is kept, and the slowest card sets the pace of all ranks.

    How to mend it: set the default again as root: nvidia-smi -i N -pl WATTS, or ask whether the site limits power on purpose.
    """
    yield from everywhere(
        snapshot.all(GpuClocks),
        lowered,
        "the power limit is below the default",
        "Run nvidia-smi -i {gpus} -pl WATTS as root with the default, or ask whether the site limits power on purpose.",
    )
