"""CD366: debug settings left on."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.log import NcclLog, NcclProcess
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.nccl_logged import process_findings
from chainerdoctor.snapshot import Snapshot

#: Setting → values that change nothing.
SWITCHES = {
    "NCCL_P2P_DISABLE": ("0",),
    "NCCL_SHM_DISABLE": ("0",),
    "NCCL_IB_DISABLE": ("0",),
    "NCCL_NET_GDR_DISABLE": ("0",),
    "NCCL_NVLS_ENABLE": ("1", "2"),
    "NCCL_CUMEM_ENABLE": ("1", "-2"),
    "NCCL_ALGO": (),
    "NCCL_PROTO": (),
    "NCCL_LAUNCH_MODE": ("GROUP", "PARALLEL"),
    "NCCL_CHECK_POINTERS": ("0",),
    "NCCL_MAX_NCHANNELS": (),
    "NCCL_MAX_CTAS": (),
}


@rule("CD366", Severity.WARNING, needs=(NcclLog,), since="0.1")
def debug_settings_left_on(snapshot: Snapshot) -> Iterator[Finding]:
    """Settings that are meant for finding faults are still on.

    Why it hurts: switches that turn a transport, an algorithm or a protocol off cost bandwidth on every step.

    How to mend it: unset them (env | grep NCCL_ on all ranks, also /etc/nccl.conf and ~/.nccl.conf) and measure
    again.

    Source: NCCL user guide, environment variables
    """

    def left_on(process: NcclProcess) -> Optional[Tuple[str, str, str]]:
        kept = {n: v for n, v in process.settings.items() if n in SWITCHES and v not in SWITCHES[n]}
        if not kept:
            return None
        seen = ", ".join(f"{name}={value}" for name, value in sorted(kept.items()))
        return "environment", seen, "settings." + min(kept)

    yield from process_findings(
        snapshot,
        left_on,
        "settings for debugging are on",
        "Unset them and measure again; look in the environment, /etc/nccl.conf and ~/.nccl.conf.",
        "not set",
    )
