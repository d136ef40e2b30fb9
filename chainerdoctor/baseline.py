"""A healthy snapshot becomes expectations, and any two snapshots can be compared. Pure."""

from __future__ import annotations

from typing import Any, Callable, Dict, Iterator, List, Mapping, Set, Tuple, Type

from chainerdoctor.facts import Fact
from chainerdoctor.facts.baseline import Compared, Deviation
from chainerdoctor.facts.fabric import NetworkInterface, RdmaPort
from chainerdoctor.facts.gpu import Gpu, GpuDriver
from chainerdoctor.facts.host import (
    HostMemory,
    HugePages,
    Iommu,
    OperatingSystem,
    Processors,
    ResourceLimit,
    SharedMemory,
)
from chainerdoctor.facts.mpi import Mpiexec, MpiLibrary
from chainerdoctor.facts.stack import (
    ChainerCuda,
    Distribution,
    EnvironmentVariable,
    ImportOutcome,
    Interpreter,
    MappedLibrary,
    SettingsFile,
    TrainingScript,
)
from chainerdoctor.snapshot import Sighting, Snapshot

ABSENT = "absent"

#: What stays the same on a machine from day to day: kind of fact → its (subject, value) pairs. Free memory, times and
#: names of hosts are not here, since they differ between any two healthy snapshots.
_SUBJECTS: Mapping[Type[Fact], Callable[[Any], List[Tuple[str, str]]]] = {
    OperatingSystem: lambda f: [
        ("kernel", f.kernel),
        ("distribution", f.distro),
        ("container", f.container or ABSENT),
    ],
    Processors: lambda f: [
        ("CPU model", f.model),
        ("processors", str(f.logical)),
        ("usable processors", str(f.usable)),
    ],
    HostMemory: lambda f: [
        ("memory", f"{f.total_bytes / 2**30:.0f} GiB"),
        ("cgroup memory limit", "none" if f.limit_bytes is None else f"{f.limit_bytes / 2**30:.1f} GiB"),
    ],
    SharedMemory: lambda f: [(f.path, f"{f.size_bytes / 2**20:.0f} MiB")],
    ResourceLimit: lambda f: [(f"ulimit {f.name}", "unlimited" if f.soft is None else str(f.soft))],
    HugePages: lambda f: [("transparent huge pages", f.transparent)],
    Iommu: lambda f: [("IOMMU", "on" if f.groups else "off")],
    NetworkInterface: lambda f: (
        [(f"interface {f.name}", f"{'up' if f.up else 'down'}, MTU {f.mtu}, {f.speed_mbps or '?'} Mb/s")]
        if not f.virtual
        else []
    ),
    RdmaPort: lambda f: [(f"{f.device} port {f.port}", f"{f.state}, {f.rate_gbps} Gb/s, {f.link_layer}")],
    GpuDriver: lambda f: [("NVIDIA driver", f.version), ("GPUs", str(f.gpus))],
    Gpu: lambda f: [(f"GPU {f.index}", f"{f.name}, {f.memory_bytes / 2**20:.0f} MiB")],
    Mpiexec: lambda f: [("mpiexec", f"{f.vendor} {f.version}")] if f.preferred else [],
    MpiLibrary: lambda f: [("MPI library", f"{f.vendor} {f.version}")],
    Interpreter: lambda f: [("Python", f.version)],
    Distribution: lambda f: [(f"package {f.name}", f.version)],
    ImportOutcome: lambda f: [(f"import {f.module}", "works" if f.ok else f.error)],
    ChainerCuda: lambda f: [("chainer.backends.cuda", f"available {f.available}, cuDNN {f.cudnn_enabled}")],
    MappedLibrary: lambda f: [(f"library {f.name}", f.version or "unknown version")],
    EnvironmentVariable: lambda f: [(f.name, f.value)],
    SettingsFile: lambda f: [(f"{f.path}: {name}", value) for name, value in f.settings],
    TrainingScript: lambda f: [("training script", f.sha256[:12])],
}

Place = Tuple[str, Any]


def compare(snapshot: Snapshot, baseline: Snapshot, name: str = "the baseline") -> Snapshot:
    """The snapshot with a :class:`Deviation` for each subject whose value no place of the baseline has.

    Every node and rank is compared with what the baseline's places say about the same subject, whatever their names,
    so the snapshot of one healthy node is a baseline for a whole cluster.
    """
    healthy = _values(baseline)
    here = _values(snapshot)
    added: List[Sighting[Fact]] = []
    for subject in sorted({*healthy, *here}):
        wanted = {value for values in healthy.get(subject, {}).values() for value in values}
        for place, values in _with_absent(here.get(subject, {}), subject, snapshot):
            # Where the baseline has it on some of its places only, its absence is healthy, too.
            may_lack = not wanted or not _everywhere(healthy[subject], baseline)
            for value in sorted(values - wanted - ({ABSENT} if may_lack else set())):
                fact = Deviation(subject, value, " or ".join(sorted(wanted)) or ABSENT)
                added.append(Sighting(place[0], place[1], "baseline", 0.0, 0.0, fact))
    subjects = len({*healthy, *here})
    summary = Sighting("", None, "baseline", 0.0, 0.0, Compared(subjects, name))
    return Snapshot(
        [*snapshot.sightings, *added, summary],
        command=snapshot.command,
        taken_at=snapshot.taken_at,
        tool=snapshot.tool,
        schema=snapshot.schema,
    )


def _values(snapshot: Snapshot) -> Dict[str, Dict[Place, Set[str]]]:
    found: Dict[str, Dict[Place, Set[str]]] = {}
    for kind, subjects in _SUBJECTS.items():
        for seen in snapshot.all(kind):
            for subject, value in subjects(seen.fact):
                found.setdefault(subject, {}).setdefault((seen.node, seen.rank), set()).add(value)
    return found


def _places(snapshot: Snapshot, per_rank: bool) -> List[Place]:
    seen = dict.fromkeys((s.node, s.rank) for s in snapshot.sightings if s.node and s.probe != "launch")
    return [place for place in seen if (place[1] is not None) is per_rank]


def _with_absent(here: Dict[Place, Set[str]], subject: str, snapshot: Snapshot) -> Iterator[Tuple[Place, Set[str]]]:
    yield from here.items()
    if here:
        per_rank = next(iter(here))[1] is not None
        for place in _places(snapshot, per_rank):
            if place not in here:
                yield place, {ABSENT}
    else:
        for node in snapshot.nodes:
            yield (node, None), {ABSENT}


def _everywhere(holders: Dict[Place, Set[str]], baseline: Snapshot) -> bool:
    per_rank = next(iter(holders))[1] is not None
    return set(_places(baseline, per_rank)) <= set(holders)
