"""CD269: gpu unreadable."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.log import LoggedGpu
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.smi_logged import per_gpu
from chainerdoctor.snapshot import Snapshot


@rule("CD269", Severity.WARNING, needs=(LoggedGpu,), since="0.1")
def gpu_unreadable(snapshot: Snapshot) -> Iterator[Finding]:
    """nvidia-smi shows ERR! or an invalid value, or asks for a reset.

    Why it hurts: a part of the GPU (a fan, a sensor, the firmware) does not answer.

    How to mend it: read nvidia-smi -q for the part; reset the GPU; look for Xids in dmesg.
    """

    def broken(values: Dict[str, str]) -> List[str]:
        return [
            key
            for key, value in values.items()
            if "ERR!" in value
            or value == "[GPU requires reset]"
            or (key in ("gpu reset status.reset required", "gpu_reset_status.reset_required") and value == "Yes")
            or (key in ("gpu recovery action", "gpu_recovery_action") and value not in ("None", "N/A", "[N/A]", ""))
        ]

    yield from per_gpu(
        snapshot,
        broken,
        "a part of the GPU does not answer or wants a reset",
        "Read nvidia-smi -q and dmesg for Xids; reset the GPU.",
        "a value",
    )
