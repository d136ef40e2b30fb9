"""CD307: nccl build differs."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import differences
from chainerdoctor.facts.stack import MappedLibrary
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD307", Severity.WARNING, needs=(MappedLibrary,), since="0.1")
def nccl_build_differs(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks have loaded the same version of NCCL in different builds.

    Why it hurts: a distribution's NCCL, NVIDIA's wheel and a local build of one version can differ in patches and
    plugins, so that only some nodes hang.

    How to mend it: load one file everywhere; the evidence names the build ids.
    """
    libraries = [seen for seen in snapshot.all(MappedLibrary) if seen.fact.name == "libnccl"]
    # Different versions are CD306's; here only one version in different builds counts.
    if len({seen.fact.version for seen in libraries}) == 1:
        yield from differences(
            libraries,
            lambda fact: None if fact.build_id is None else f"build id {fact.build_id[:16]}",
            "the build of NCCL",
            "Load the same libnccl.so.2 on all nodes; ldd and the path in the snapshot show where each comes from.",
        )
