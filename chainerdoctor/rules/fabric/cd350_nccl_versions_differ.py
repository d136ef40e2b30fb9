"""CD350: nccl versions differ."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.facts.log import NcclCommunicator, NcclLog, NcclProcess
from chainerdoctor.findings import Evidence, Finding, Location, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.logged import events, place, quotes, shortened, speakers
from chainerdoctor.rules.nccl_logged import hosts_of
from chainerdoctor.snapshot import Snapshot


def differ_at_once(snapshot: Snapshot, lines: Dict[str, Tuple[str, int]]) -> bool:
    """Whether the versions belong to one run: two in one communicator, or one a file in files given together."""
    version_at = {(p.fact.host, p.fact.device): p.fact.version for p in snapshot.all(NcclProcess) if p.fact.version}
    for sighting in snapshot.all(NcclCommunicator):
        if not sighting.fact.identified:
            continue
        seen = set()
        for where in sighting.fact.where.values():
            host, device = where.split("/")[:2]
            version = version_at.get((host, int(device) if device.isdigit() else None))
            if version is not None:
                seen.add(version)
        if len(seen) > 1:
            return True
    single = [log.fact for log in snapshot.all(NcclLog) if len(log.fact.versions) == 1]
    return len(single) > 1 and len({next(iter(log.versions)) for log in single}) > 1


@rule("CD350", Severity.ERROR, needs=(NcclLog,), since="0.1")
def nccl_versions_differ(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks of one run load different NCCL versions.

    Why it hurts: NCCL refuses to start, or (older versions) hangs or corrupts data.

    How to mend it: install one NCCL on all hosts and see which one is
    loaded: nccl.get_version() (from cupy.cuda import nccl) on each; look at LD_LIBRARY_PATH, LD_PRELOAD and pip's
    nvidia-nccl wheels.

    Source: NVIDIA/nccl#286; src/init.cc
    """
    found = events(snapshot, "nccl.version_mismatch")
    by_version: Dict[str, List[NcclProcess]] = {}
    for sighting in snapshot.all(NcclProcess):
        if sighting.fact.version is not None:
            by_version.setdefault(sighting.fact.version, []).append(sighting.fact)
    lines: Dict[str, Tuple[str, int]] = {}
    for log in snapshot.all(NcclLog):
        for version, line in log.fact.versions.items():
            lines.setdefault(version, (log.fact.path, line))
    # A log can hold several runs one after the other: versions that never run at once are no mismatch. Only what NCCL
    # says itself, or ranks of one communicator, or files given side by side count.
    if not found and not differ_at_once(snapshot, lines):
        return
    evidence = list(quotes(found, snapshot))
    for version in sorted(lines):
        path, line = lines[version]
        evidence.append(
            Evidence(
                f"NCCL {version}, {place(path, line)}",
                hosts_of(by_version[version]) if version in by_version else "a rank",
            )
        )
    path, line = (found[0].path, found[0].line) if found else lines[max(lines)]
    yield Finding(
        speakers(found) if found else shortened(sorted({p.host for ps in by_version.values() for p in ps})),
        "ranks use different NCCL versions",
        "Install one NCCL version on all hosts; print nccl.get_version() on each and look at LD_LIBRARY_PATH.",
        tuple(evidence),
        Location(path, line),
    )
