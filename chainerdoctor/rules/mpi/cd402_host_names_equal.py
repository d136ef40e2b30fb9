"""CD402: host names equal."""

from __future__ import annotations

from typing import Dict, Iterator, List

from chainerdoctor.facts.host import Boot, OperatingSystem
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD402", Severity.ERROR, needs=(Boot,), since="0.1")
def host_names_equal(snapshot: Snapshot) -> Iterator[Finding]:
    """Two machines have the same host name.

    Why it hurts: NCCL and MPI take ranks with equal host names for neighbours on one machine and try shared memory
    or CUDA IPC between them: start-up fails or hangs. ChainerMN's intra_rank counts wrongly, so two ranks take one
    GPU.

    How to mend it: give each node its own name (hostnamectl set-hostname), each container its own --hostname.

    Source: NVIDIA/nccl-tests issue 188.
    """
    names: Dict[str, List[str]] = {}
    for seen in snapshot.all(OperatingSystem):
        names.setdefault(seen.fact.hostname, []).append(seen.node)
    boots = {seen.node: seen.fact.boot_id for seen in snapshot.all(Boot)}
    for hostname, nodes in names.items():
        different = {boots[node]: node for node in nodes if node in boots}
        if len(different) > 1:
            yield Finding(
                where=", ".join(sorted(set(nodes))),
                message=f"{len(different)} machines are all called {hostname}",
                remedy="Give each node a name of its own: hostnamectl set-hostname NAME (containers: --hostname NAME).",
                evidence=(Evidence("boot ids under one name", ", ".join(b[:8] for b in sorted(different)), "one"),),
            )
