"""CD353: loopback across hosts."""

from __future__ import annotations

from typing import Iterator, Optional, Tuple

from chainerdoctor.facts.log import NcclLog, NcclProcess
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import counted
from chainerdoctor.rules.nccl_logged import process_findings
from chainerdoctor.snapshot import Snapshot


@rule("CD353", Severity.ERROR, needs=(NcclLog,), since="0.1")
def loopback_across_hosts(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL announces the loopback address although the run spans several hosts.

    Why it hurts: 127.0.0.1 is another machine on every host: the ranks never meet.

    How to mend it: set NCCL_SOCKET_IFNAME to a real interface; see that the host's name does not resolve to
    127.0.0.1 only and that the interface is up.
    """
    hosts = {s.fact.host for s in snapshot.all(NcclProcess)}

    def loops(process: NcclProcess) -> Optional[Tuple[str, str, str]]:
        bad = [
            f"{name}:{address}" for name, address in process.bootstrap[:1] if name == "lo" or address.startswith("127.")
        ]
        return ("bootstrap", bad[0], "bootstrap") if bad and len(hosts) > 1 else None

    yield from process_findings(
        snapshot,
        loops,
        f"NCCL uses the loopback address on a run over {counted(len(hosts), 'host')}",
        "Set NCCL_SOCKET_IFNAME to the interface that all hosts share.",
        "an address that other hosts can reach",
    )
