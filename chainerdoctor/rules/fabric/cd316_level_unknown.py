"""CD316: level unknown."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import EnvironmentSurvey
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.nccl_settings import settings_of
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.nccl_releases import (
    LEVELS,
)

#: Further names that NCCL's source takes although the guide does not list them.
_INNER = ("NVL", "NVB", "C2C", "P2C", "PXN", "DIS")


@rule("CD316", Severity.WARNING, needs=(EnvironmentSurvey,), since="0.1")
def level_unknown(snapshot: Snapshot) -> Iterator[Finding]:
    """A distance for NCCL is a word that NCCL does not know.

    Why it hurts: NCCL ignores it without a message and keeps its default, so whoever set it believes that it acts. Words
    have to be in capitals.

    How to mend it: write one of LOC, NVL (P2P only), PIX, PXB, PHB, SYS.

    Source: NCCL user guide, NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL; NCCL src/graph/paths.cc, ncclGetLevel.
    """
    for name, words in LEVELS.items():
        for setting in settings_of(snapshot, name):
            if not setting.value.lstrip("-").isdigit() and setting.value not in (*words, *_INNER):
                yield Finding(
                    where=places(setting.seen),
                    message=f"{name}={setting.value} is no distance that NCCL knows",
                    remedy=f"Set {name} to one of {', '.join(words)}.",
                    evidence=setting.evidence(", ".join(words)),
                )
