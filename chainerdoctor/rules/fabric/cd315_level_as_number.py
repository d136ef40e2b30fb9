"""CD315: level as number."""

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


@rule("CD315", Severity.WARNING, needs=(EnvironmentSurvey,), since="0.1")
def level_as_number(snapshot: Snapshot) -> Iterator[Finding]:
    """A distance for NCCL is given as a number.

    Why it hurts: what a number means has changed between versions (0 to 4, then 0 to 5), so the same script uses peer access
    or GPUDirect over other distances after an upgrade.

    How to mend it: write the name of the distance: LOC, NVL (P2P only), PIX, PXB, PHB or SYS.

    Source: NCCL user guide, NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL, "Integer Values (Legacy)".
    """
    for name, words in LEVELS.items():
        for setting in settings_of(snapshot, name):
            if setting.value.lstrip("-").isdigit():
                yield Finding(
                    where=places(setting.seen),
                    message=f"{name} is a number, whose meaning depends on the version",
                    remedy=f"Set {name} to one of {', '.join(words)}.",
                    evidence=setting.evidence(", ".join(words)),
                )
