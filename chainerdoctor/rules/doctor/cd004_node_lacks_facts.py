"""CD004: node lacks facts."""

from __future__ import annotations

from typing import Dict, Iterator, Tuple, Type

from chainerdoctor.facts import Fact
from chainerdoctor.facts.fabric import NetworkSurvey, RdmaPort
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.host import HostMemory, OperatingSystem, Processors, ResourceLimit
from chainerdoctor.facts.mpi import MpiLibrary, RankOutcome
from chainerdoctor.facts.stack import EnvironmentSurvey, ImportOutcome, Interpreter, PackageSurvey
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: What every node of a job should be able to tell.
_COMPARED: Tuple[Type[Fact], ...] = (
    OperatingSystem,
    Processors,
    HostMemory,
    ResourceLimit,
    NetworkSurvey,
    RdmaPort,
    GpuDriver,
    MpiLibrary,
    Interpreter,
    PackageSurvey,
    ImportOutcome,
    EnvironmentSurvey,
)
_NAMES: Dict[Type[Fact], str] = {
    GpuDriver: "NVIDIA driver",
    RdmaPort: "RDMA port",
    MpiLibrary: "MPI library for mpi4py",
}


@rule("CD004", Severity.WARNING, needs=(RankOutcome,), since="0.1")
def node_lacks_facts(snapshot: Snapshot) -> Iterator[Finding]:
    """A node lacks facts that most other nodes gave.

    Why it hurts: partial blindness reads as health: rules compare the nodes that answered and pass. And a node
    without a driver, an adapter or an MPI that all others have will not train with them.

    How to mend it: compare that node with a healthy one: chainerdoctor snapshot on both, then chainerdoctor diff.
    """
    nodes = snapshot.nodes
    incomplete = {seen.node for seen in snapshot.all(RankOutcome) if seen.fact.state != "complete"}
    # What a probe could not see through a fault is told by CD001.
    told = {(s.node, kind): s.fact for s in snapshot.missing for kind in s.fact.kinds}
    for kind in _COMPARED:
        holders = {seen.node for seen in snapshot.all(kind)}
        if 2 * len(holders) <= len(nodes):
            continue
        for node in nodes:
            why = told.get((node, kind.kind))
            if node in holders or node in incomplete or (why is not None and why.blind):
                continue
            yield Finding(
                where=node,
                message=f"has no {_NAMES.get(kind, kind.kind)}, and {len(holders)} of {len(nodes)} nodes have",
                remedy="Compare it with a healthy node: chainerdoctor snapshot on both, then chainerdoctor diff A B.",
                evidence=(Evidence(kind.kind, why.detail if why else "nothing was said about it", "as on the others"),),
            )
