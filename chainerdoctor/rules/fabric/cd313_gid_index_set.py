"""CD313: gid index set."""

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
    DYNAMIC_GID,
)


@rule("CD313", Severity.WARNING, needs=(NcclVersion,), since="0.1")
def gid_index_set(snapshot: Snapshot) -> Iterator[Finding]:
    """NCCL_IB_GID_INDEX is set, and this NCCL chooses the GID itself.

    Why it hurts: from 2.21 on NCCL looks for the right GID at each start. A fixed index is right until the network changes
    or a node numbers its GIDs differently: then connections fail or go out by the wrong RoCE version.

    How to mend it: remove NCCL_IB_GID_INDEX; to prefer an address family set NCCL_IB_ADDR_FAMILY or NCCL_IB_ROCE_VERSION_NUM.

    Source: NCCL user guide, NCCL_IB_GID_INDEX.
    """
    version = loaded_version(snapshot)
    # -1 is NCCL's own default: choose by itself.
    for setting in settings_of(snapshot, "NCCL_IB_GID_INDEX"):
        if version is not None and version_key(version) >= version_key(DYNAMIC_GID) and setting.value != "-1":
            yield Finding(
                where=places(setting.seen),
                message=f"NCCL_IB_GID_INDEX is set, which NCCL {version} does not need",
                remedy="Remove NCCL_IB_GID_INDEX from the job script, shell profile or nccl.conf.",
                evidence=setting.evidence("not set"),
            )
