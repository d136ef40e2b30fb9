"""CD263: xid check nvlink."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import KernelLog
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.xids import xids
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables import xid as table


@rule("CD263", Severity.ERROR, needs=(KernelLog,), since="0.1")
def xid_check_nvlink(snapshot: Snapshot) -> Iterator[Finding]:
    """A GPU reported an NVLink error (Xid 74, or 144 to 150).

    Why it hurts: traffic between GPUs fails or repeats; on NVSwitch machines a fatal one stops all GPUs.

    How to mend it: read nvidia-smi nvlink -s and -e; reset the GPUs and the fabric manager; a link that fails
    again is hardware. For 144 to 150 the words Fatal or Nonfatal and the link number count.

    Source: docs.nvidia.com/deploy/xid-errors, Xid catalog
    """
    return xids(
        snapshot,
        lambda action: action == table.LINK,
        "Check nvidia-smi nvlink -s and -e, reset the GPUs and nvidia-fabricmanager; call support if the same "
        "link fails again.",
    )
