"""CD275: uncorrectable ecc."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.log import LoggedGpu
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.smi_logged import per_gpu
from chainerdoctor.snapshot import Snapshot


@rule("CD275", Severity.ERROR, needs=(LoggedGpu,), since="0.1")
def uncorrectable_ecc(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU has counted uncorrectable memory errors since the driver was loaded.

    Why it hurts: data were lost: a job was killed or its results are wrong.

    How to mend it: reset the GPU and watch the counter; have the GPU tested if it counts again.

    Source: docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt
    """
    keys = (
        "volatile uncorr. ecc",
        "ecc errors.volatile.dram uncorrectable",
        "ecc errors.volatile.sram uncorrectable",
        "ecc errors.volatile.sram uncorrectable parity",
        "ecc errors.volatile.sram uncorrectable sec-ded",
        "ecc errors.volatile.double bit.total",
        "ecc.errors.uncorrected.volatile.total",
    )

    def counted(values: Dict[str, str]) -> List[str]:
        return [key for key in keys if values.get(key, "").strip("0").isdigit()]

    yield from per_gpu(
        snapshot,
        counted,
        "uncorrectable memory errors were counted",
        "Reset the GPU (nvidia-smi --gpu-reset -i N); have it tested if the counter grows again.",
        "0",
    )
