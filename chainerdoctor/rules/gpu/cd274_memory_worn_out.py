"""CD274: memory worn out."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.log import LoggedGpu
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.smi_logged import per_gpu, says_yes
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.xid import RETIRED_PAGES_FOR_REPLACEMENT


@rule("CD274", Severity.ERROR, needs=(LoggedGpu,), since="0.1")
def memory_worn_out(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU can no longer repair its memory.

    Why it hurts: the next error cannot be replaced; NVIDIA exchanges such GPUs.

    How to mend it: take the GPU out of use and ask for a replacement with nvidia-bug-report.sh.

    Source: docs.nvidia.com/deploy/dynamic-page-retirement
    """

    def worn(values: Dict[str, str]) -> List[str]:
        yes = says_yes(
            "remapped rows.remapping failure occurred",
            "remapped_rows.failure",
            "ecc errors.aggregate.sram threshold exceeded",
            "ecc.errors.uncorrected.aggregate.sram.thresholdexceeded",
            "ecc errors.unrepairable memory",
        )(values)
        return yes + [
            key
            for key in (
                "retired pages.single bit ecc",
                "retired pages.double bit ecc",
                "retired_pages.double_bit.count",
            )
            if values.get(key, "").isdigit()
            and len(values[key]) < 10
            and int(values[key]) >= RETIRED_PAGES_FOR_REPLACEMENT
        ]

    yield from per_gpu(
        snapshot,
        worn,
        "memory can no longer be repaired",
        "Take the GPU out of use and ask for a replacement (nvidia-bug-report.sh).",
        f"No, or fewer than {RETIRED_PAGES_FOR_REPLACEMENT} pages",
    )
