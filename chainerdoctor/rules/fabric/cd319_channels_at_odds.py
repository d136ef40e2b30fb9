"""CD319: channels at odds."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import EnvironmentSurvey
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.nccl_settings import settings_of
from chainerdoctor.snapshot import Snapshot


@rule("CD319", Severity.ERROR, needs=(EnvironmentSurvey,), since="0.1")
def channels_at_odds(snapshot: Snapshot) -> Iterator[Finding]:
    """The least number of NCCL's channels is set higher than the most.

    Why it hurts: NCCL takes one of the two bounds and not the one that was meant; ranks that differ in it hang.

    How to mend it: remove both, or set NCCL_MIN_CTAS below NCCL_MAX_CTAS.

    Source: NCCL user guide, NCCL_MIN_CTAS and NCCL_MAX_CTAS (NCHANNELS before 2.17).
    """
    for low_name, high_name in (("NCCL_MIN_CTAS", "NCCL_MAX_CTAS"), ("NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS")):
        for low in settings_of(snapshot, low_name):
            for high in settings_of(snapshot, high_name):
                if low.value.isdigit() and high.value.isdigit() and int(low.value) > int(high.value):
                    yield Finding(
                        where=places(low.seen),
                        message=f"{low_name} is above {high_name}",
                        remedy=f"Remove {low_name} and {high_name}, or set the first below the second.",
                        evidence=(*low.evidence(f"at most {high.value}"), *high.evidence(f"at least {low.value}")),
                    )
