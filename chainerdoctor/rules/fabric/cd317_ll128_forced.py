"""CD317: ll128 forced."""

from __future__ import annotations

from typing import Dict, Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.fabric import NvLink
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.stack import EnvironmentSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.nccl_settings import settings_of
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD317",
    Severity.ERROR,
    needs=(
        EnvironmentSurvey,
        Gpu,
    ),
    since="0.1",
)
def ll128_forced(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL_PROTO forces LL128 on GPUs for which NCCL does not use it by itself.

    Why it hurts: LL128 needs stores of 128 bytes that arrive in one piece, which NVLink machines from Volta on have. Forced
    elsewhere it corrupts data without a word.

    How to mend it: remove NCCL_PROTO, or exclude LL128 instead of forcing it: NCCL_PROTO=^LL128.

    Source: NCCL user guide, NCCL_PROTO.
    """
    nodes_with_links = {seen.node for seen in snapshot.all(NvLink) if seen.fact.active}
    several: Dict[str, int] = {}
    unfit: Dict[str, str] = {}
    for seen in snapshot.all(Gpu):
        several[seen.node] = several.get(seen.node, 0) + 1
        if seen.fact.compute_capability is not None and seen.fact.compute_capability < (7, 0):
            unfit.setdefault(seen.node, f"{seen.fact.name} is older than Volta")
    for node, count in several.items():
        if count > 1 and node not in nodes_with_links:
            unfit.setdefault(node, "no NVLink between the GPUs")
    for setting in settings_of(snapshot, "NCCL_PROTO"):
        words = [word.strip().upper() for word in setting.value.split(",")]
        sightings = [seen for seen in setting.seen if seen.node in unfit]
        if "LL128" in words and not setting.value.startswith("^") and sightings:
            yield Finding(
                where=places(sightings),
                message="LL128 is forced where NCCL would not use it",
                remedy="Remove NCCL_PROTO, or set NCCL_PROTO=^LL128.",
                evidence=(*setting.evidence("not set"), Evidence("why not here", unfit[sightings[0].node])),
            )
