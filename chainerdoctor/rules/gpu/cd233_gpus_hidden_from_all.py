"""CD233: gpus hidden from all."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.gpu import (
    Gpu,
)
from chainerdoctor.facts.stack import EnvironmentVariable
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule(
    "CD233",
    Severity.WARNING,
    needs=(
        EnvironmentVariable,
        Gpu,
    ),
    since="0.1",
)
def gpus_hidden_from_all(snapshot: Snapshot) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES hides every GPU from a rank.

    Why it hurts: Chainer finds no GPU and trains on the CPU, or ends with "no CUDA-capable device is detected".

    How to mend it: unset CUDA_VISIBLE_DEVICES (an empty value hides all devices, too).

    Source: CUDA C++ programming guide, "CUDA Environment Variables".
    """
    hidden = [
        seen
        for seen in snapshot.all(EnvironmentVariable)
        if seen.fact.name == "CUDA_VISIBLE_DEVICES"
        and (not seen.fact.value.strip() or seen.fact.value.split(",")[0].strip() in ("-1", "NoDevFiles"))
    ]
    with_gpus = {seen.node for seen in snapshot.all(Gpu)}
    sightings = [seen for seen in hidden if seen.node in with_gpus]
    if sightings:
        yield Finding(
            where=places(sightings),
            message="CUDA_VISIBLE_DEVICES hides every GPU",
            remedy="Unset CUDA_VISIBLE_DEVICES in the job script or shell profile.",
            evidence=(Evidence("CUDA_VISIBLE_DEVICES", repr(sightings[0].fact.value), "not set, or a list of GPUs"),),
        )
