"""A quick look at this machine's GPUs, for commands that need no ranks."""

from __future__ import annotations

import time
from typing import Tuple

from chainerdoctor.facts import Fact, Missing
from chainerdoctor.host import LiveHost
from chainerdoctor.launch.shelter import run_probes
from chainerdoctor.probes.gpu import PROBES

_DEADLINE_S = 10.0


class BlindError(Exception):
    """There may be GPUs here, and they could not be seen; the text says why."""


def gpu_facts() -> Tuple[Fact, ...]:
    """Driver and GPUs; nothing on a machine that has none.

    The probe runs in a process of its own: a driver that hangs or crashes takes nothing else down.

    Raises:
        BlindError: the probe failed.
    """
    seen = []
    for sightings in run_probes(PROBES, LiveHost(), "here", None, time.monotonic() + _DEADLINE_S):
        for sighting in sightings:
            if isinstance(sighting.fact, Missing) and sighting.fact.blind:
                raise BlindError(f"the GPUs of this machine could not be seen ({sighting.fact.detail})")
            seen.append(sighting.fact)
    return tuple(seen)
