"""CD354: loopback bootstrap."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.log import NcclLog, NcclProcess
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.nccl_logged import process_findings
from chainerdoctor.snapshot import Snapshot


@rule("CD354", Severity.INFO, needs=(NcclLog,), since="0.1")
def loopback_bootstrap(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL uses the loopback interface; that works only while all ranks are on this host.

    Why it hurts: nothing, on one host. As soon as a second host takes part the ranks cannot meet.

    How to mend it: before using several hosts set NCCL_SOCKET_IFNAME, and see why no other interface was found
    (ip addr).

    Source: NVIDIA/nccl#300
    """
    hosts = {s.fact.host for s in snapshot.all(NcclProcess)}

    def loops(process: NcclProcess) -> Optional[Tuple[str, str, str]]:
        bad = [
            f"{name}:{address}" for name, address in process.bootstrap[:1] if name == "lo" or address.startswith("127.")
        ]
        return ("bootstrap", bad[0], "bootstrap") if bad and len(hosts) == 1 else None

    yield from process_findings(
        snapshot,
        loops,
        "NCCL uses the loopback interface (fine on one host only)",
        "Set NCCL_SOCKET_IFNAME before using several hosts; see with ip addr why no other interface was taken.",
        "any other interface",
    )
