"""CD304: debug knob left on."""

from __future__ import annotations

from typing import Iterator, List

from chainerdoctor.consensus import places
from chainerdoctor.facts import Fact
from chainerdoctor.facts.stack import EnvironmentSurvey, EnvironmentVariable, SettingsFile
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot

KNOBS = {
    "NCCL_P2P_DISABLE": "GPUs of a node no longer reach each other directly",
    "NCCL_SHM_DISABLE": "ranks of a node no longer use shared memory",
    "NCCL_IB_DISABLE": "nodes no longer use InfiniBand or RoCE",
    "NCCL_ALGO": "NCCL may no longer choose the algorithm by size",
    "NCCL_PROTO": "NCCL may no longer choose the protocol by size",
    "NCCL_CHECKS_DISABLE": "NCCL no longer checks its arguments",
    "NCCL_LAUNCH_MODE": "how kernels are launched is forced",
}


def _is_on(name: str, value: str) -> bool:
    """The DISABLE knobs are switches, 0 leaves them off; the others act whenever they are set."""
    return value.strip() not in ("", "0") if name.endswith("_DISABLE") else bool(value.strip())


@rule("CD304", Severity.WARNING, needs=(EnvironmentSurvey,), since="0.1")
def debug_knob_left_on(snapshot: Snapshot) -> Iterator[Finding]:
    """A setting that is meant for finding faults is left on and makes NCCL slow or unsafe.

    Why it hurts: turning off peer-to-peer, shared memory or InfiniBand, or forcing an algorithm or protocol, works
    around one fault and costs bandwidth in every run after it. LL128 forced where the platform does not support it
    corrupts data.

    How to mend it: remove the variable from the job script, shell profile or nccl.conf, and measure with
    allreduce-bench.

    Source: NCCL user guide, "Environment Variables" (marked there as not for production).
    """
    for name, meaning in KNOBS.items():
        set_on: List[Sighting[Fact]] = [
            s for s in snapshot.all(EnvironmentVariable) if s.fact.name == name and _is_on(name, s.fact.value)
        ]
        in_files = [
            (s, value)
            for s in snapshot.all(SettingsFile)
            for n, value in s.fact.settings
            if n == name and _is_on(n, value)
        ]
        evidence = [
            Evidence(name, s.fact.value, "not set") for s in set_on[:1] if isinstance(s.fact, EnvironmentVariable)
        ]
        evidence += [Evidence(f"{name} in {s.fact.path}", value, "not set") for s, value in in_files[:1]]
        if evidence:
            yield Finding(
                where=places([*set_on, *(s for s, _ in in_files)]),
                message=f"{name} is set: {meaning}",
                remedy=f"Remove {name} from the job script, shell profile or nccl.conf.",
                evidence=tuple(evidence),
            )
