"""CD323: debug output heavy."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import EnvironmentSurvey
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.nccl_settings import settings_of
from chainerdoctor.snapshot import Snapshot


@rule("CD323", Severity.INFO, needs=(EnvironmentSurvey,), since="0.1")
def debug_output_heavy(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL_DEBUG is set to TRACE, or to INFO for every subsystem.

    Why it hurts: NCCL then writes for every operation of every rank; on many ranks the output alone slows training, and the
    log hides what matters.

    How to mend it: set NCCL_DEBUG=WARN for production, or limit it: NCCL_DEBUG_SUBSYS=INIT,NET.

    Source: NCCL user guide, NCCL_DEBUG and NCCL_DEBUG_SUBSYS.
    """
    everything = any(s.value.upper() == "ALL" for s in settings_of(snapshot, "NCCL_DEBUG_SUBSYS"))
    for setting in settings_of(snapshot, "NCCL_DEBUG"):
        if setting.value.upper() == "TRACE" or (setting.value.upper() == "INFO" and everything):
            yield Finding(
                where=places(setting.seen),
                message="NCCL writes for every operation",
                remedy="Set NCCL_DEBUG=WARN, or NCCL_DEBUG_SUBSYS=INIT,NET.",
                evidence=setting.evidence("WARN"),
            )
