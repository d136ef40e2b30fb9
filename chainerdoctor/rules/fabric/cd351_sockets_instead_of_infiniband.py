"""CD351: sockets instead of infiniband."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.log import LoggedIbPort, NcclCommunicator, NcclLog, NcclProcess
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import counted, events, place, quotes, speakers
from chainerdoctor.rules.nccl_logged import hosts_of
from chainerdoctor.snapshot import Snapshot


@rule("CD351", Severity.WARNING, needs=(NcclLog,), since="0.1")
def sockets_instead_of_infiniband(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL uses TCP sockets although InfiniBand is there or was not even looked for.

    Why it hurts: sockets reach a tenth of an InfiniBand card's rate and cost processor time.

    How to mend it: in a container install the user-space libraries (libibverbs1, ibverbs-providers, librdmacm1)
    and pass the devices (--device=/dev/infiniband, --cap-add=IPC_LOCK); elsewhere check ibstat, NCCL_IB_DISABLE
    and NCCL_IB_HCA. On hosts without InfiniBand nothing is wrong.

    Source: NVIDIA/nccl#857; src/transport/net_ib
    """
    no_library = events(snapshot, "nccl.no_ibverbs")
    processes = [s.fact for s in snapshot.all(NcclProcess)]
    on_sockets = [p for p in processes if p.network == "Socket" or (p.network is None and p.interfaces)]
    on_ib = [p for p in processes if p.network and p.network.startswith("IB")]
    ports = [
        s.fact for s in snapshot.all(LoggedIbPort) if s.fact.state.lower() == "active" and s.fact.layer == "InfiniBand"
    ]
    # On one host all traffic stays inside: the network does not matter.
    inside = [s.fact for s in snapshot.all(NcclCommunicator)]
    within_host = bool(inside) and all(
        len(c.finished) == c.nranks > 1 and c.edges and not any(e.transport.startswith("NET") for e in c.edges)
        for c in inside
    )
    if not on_sockets and not (no_library and not on_ib) or within_host:
        return
    if no_library:
        why = "NCCL could not open libibverbs, so it cannot see InfiniBand and uses sockets"
    elif on_ib or ports:
        why = "NCCL uses sockets on some ranks although InfiniBand is there"
    else:
        return
    evidence = list(quotes(no_library, snapshot))
    for process in on_sockets[:1]:
        line = process.lines.get("network", process.lines.get("interfaces", 0))
        seen = f"Socket on {counted(len(on_sockets), 'process')}"
        evidence.append(
            Evidence(f"network, {place(process.path, line)}", seen, f"IB, as on {len(on_ib)} others" if on_ib else "IB")
        )
    for port in ports[:1]:
        evidence.append(Evidence(f"port, {place(port.path, port.line)}", f"{port.device} is active"))
    first = on_sockets[0] if on_sockets else None
    where = hosts_of(on_sockets) if on_sockets else speakers(no_library)
    path, line = (
        (no_library[0].path, no_library[0].line)
        if no_library
        else (first.path, first.lines.get("network", 0))
        if first
        else ("", 0)
    )
    yield Finding(
        where,
        why,
        "Install libibverbs1 and ibverbs-providers in the container and pass --device=/dev/infiniband "
        "--cap-add=IPC_LOCK.",
        tuple(evidence),
        Location(path, line),
    )
