"""What the rules about nvidia-smi's output share: one finding per GPU with the values that are wrong."""

from __future__ import annotations

from typing import Callable, Dict, Iterator, List, Tuple

from chainerdoctor.facts.log import LoggedGpu
from chainerdoctor.findings import Evidence, Finding, Location
from chainerdoctor.rules.logged import place, visible
from chainerdoctor.snapshot import Snapshot

Wrong = Callable[[Dict[str, str]], List[str]]

_SHOWN = 6


def says_yes(*keys: str) -> Wrong:
    """Which of these keys say Yes."""
    return lambda values: [key for key in keys if values.get(key, "").lower() == "yes"]


def per_gpu(snapshot: Snapshot, wrong: Wrong, message: str, remedy: str, wanted: str) -> Iterator[Finding]:
    """One finding for each GPU for which ``wrong`` names keys; a GPU that a file shows twice is named once."""
    told: Dict[Tuple[str, str], None] = {}
    for sighting in snapshot.all(LoggedGpu):
        gpu = sighting.fact
        keys = wrong(gpu.values)
        if not keys or (gpu.path, gpu.gpu) in told:
            continue
        told[(gpu.path, gpu.gpu)] = None
        name = f" ({gpu.name})" if gpu.name else ""
        evidence = tuple(
            Evidence(f"{key} ({place(gpu.path, gpu.lines.get(key, gpu.line))})", visible(gpu.values[key]), wanted)
            for key in keys[:_SHOWN]
        )
        line = gpu.lines.get(keys[0], gpu.line)
        yield Finding(f"GPU {gpu.gpu.replace('GPU', '')}{name}", message, remedy, evidence, Location(gpu.path, line))
