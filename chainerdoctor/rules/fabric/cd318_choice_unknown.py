"""CD318: choice unknown."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import EnvironmentSurvey
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.nccl_settings import settings_of
from chainerdoctor.snapshot import Snapshot

_SHOWN = {
    "NCCL_ALGO": ("Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"),
    "NCCL_PROTO": ("LL", "LL128", "Simple"),
}
#: In lower case, with "Collnet", which versions before 2.14 took.
_WORDS = {name: {word.lower() for word in words} | {"collnet"} for name, words in _SHOWN.items()}


@rule("CD318", Severity.ERROR, needs=(EnvironmentSurvey,), since="0.1")
def choice_unknown(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL_ALGO or NCCL_PROTO names something that NCCL does not have.

    Why it hurts: up to 2.23 NCCL ignores the word, and nothing is forced; from 2.24 on it refuses to start.

    How to mend it: correct the word, or remove the variable and let NCCL choose.

    Source: NCCL user guide, NCCL_ALGO and NCCL_PROTO.
    """
    for name, words in _WORDS.items():
        for setting in settings_of(snapshot, name):
            # From 2.24 on: "allreduce:tree,ring;broadcast:ring"; a leading ^ excludes.
            parts = [part.split(":", 1)[-1] for part in setting.value.split(";")]
            named = [word.strip().lstrip("^").lower() for part in parts for word in part.split(",")]
            unknown = [word for word in named if word and word not in words]
            if unknown:
                yield Finding(
                    where=places(setting.seen),
                    message=f"{name} names {unknown[0]!r}, which NCCL does not have",
                    remedy=f"Remove {name}, or choose among {', '.join(_SHOWN[name])}.",
                    evidence=setting.evidence(", ".join(_SHOWN[name])),
                )
