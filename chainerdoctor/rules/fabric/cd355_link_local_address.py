"""CD355: link local address."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.log import NcclLog, NcclProcess
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.nccl_logged import process_findings
from chainerdoctor.snapshot import Snapshot


@rule("CD355", Severity.WARNING, needs=(NcclLog,), since="0.1")
def link_local_address(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL announces a link-local IPv6 address (fe80::…).

    Why it hurts: such an address is valid only together with the interface it was seen on; another host's
    interface has another name, and the connection fails.

    How to mend it: set NCCL_SOCKET_FAMILY=AF_INET, or NCCL_SOCKET_IFNAME to an interface that has an ordinary
    address.

    Source: NVIDIA/nccl#975
    """

    def local(process: NcclProcess) -> Optional[Tuple[str, str, str]]:
        bad = [f"{name}:{address}" for name, address in process.bootstrap[:1] if address.lower().startswith("fe80:")]
        return ("bootstrap", bad[0], "bootstrap") if bad else None

    yield from process_findings(
        snapshot,
        local,
        "NCCL announces a link-local address",
        "Set NCCL_SOCKET_FAMILY=AF_INET, or NCCL_SOCKET_IFNAME to an interface with an ordinary address.",
        "a routable address",
    )
