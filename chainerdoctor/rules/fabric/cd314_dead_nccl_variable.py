"""CD314: dead nccl variable."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.stack import NcclVersion
from chainerdoctor.findings import Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.fabric.nccl_settings import loaded_version, settings_of
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.cuda_drivers import version_key
from chainerdoctor.tables.nccl_releases import (
    DEAD_VARIABLES,
)


@rule("CD314", Severity.WARNING, needs=(NcclVersion,), since="0.1")
def dead_nccl_variable(snapshot: Snapshot) -> Iterator[Finding]:
    """A variable is set that this version of NCCL no longer heeds, or heeds under another name only.

    Why it hurts: whoever set it believes that it acts. NCCL says nothing about variables that it does not know.

    How to mend it: remove it, or set what took its place (the remedy names it).

    Source: NCCL user guide, "Environment Variables"; the table is chainerdoctor/tables/nccl_releases.py.
    """
    version = loaded_version(snapshot)
    for row in DEAD_VARIABLES:
        if version is None or version_key(version) < version_key(row.since):
            continue
        for setting in settings_of(snapshot, row.name):
            another = row.instead.startswith("NCCL_")
            yield Finding(
                where=places(setting.seen),
                message=f"{row.name} is out of use since NCCL {row.since}",
                remedy=f"Remove {row.name}; set {row.instead} if need be."
                if another
                else f"Remove {row.name}: {row.instead}.",
                evidence=setting.evidence(row.instead if another else "not set"),
            )
