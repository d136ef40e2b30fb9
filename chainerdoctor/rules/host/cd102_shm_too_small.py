"""CD102: shm too small."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.host import SharedMemory
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

_DOCKER_DEFAULT_BYTES = 64 * 2**20


@rule("CD102", Severity.ERROR, needs=(SharedMemory,), since="0.1")
def shm_too_small(snapshot: Snapshot) -> Iterator[Finding]:
    """/dev/shm has 64 MiB or less, and several ranks run on the node.

    Why it hurts: NCCL and MPI exchange data between ranks of one node through /dev/shm. Docker gives 64 MiB by
    default, and the run ends in "posix_fallocate failed : No space left on device" or a bus error.

    How to mend it: start the container with --shm-size=1g (Kubernetes: an emptyDir with medium: Memory mounted at
    /dev/shm).

    Source: NVIDIA/nccl issue 290; NCCL user guide, "Docker".
    """
    crowded = {seen.node for seen in snapshot.all(LaunchedAs) if (seen.fact.local_size or 1) > 1}
    crowded |= {seen.node for seen in snapshot.all(GpuDriver) if seen.fact.gpus > 1}
    for seen in snapshot.all(SharedMemory):
        if seen.node in crowded and seen.fact.size_bytes <= _DOCKER_DEFAULT_BYTES:
            yield Finding(
                where=seen.where,
                message="shared memory is too small for several ranks on one node",
                remedy="Start the container with --shm-size=1g, or: mount -o remount,size=1g /dev/shm",
                evidence=(Evidence(seen.fact.path, f"{seen.fact.size_bytes / 2**20:.0f} MiB", "1 GiB or more"),),
            )
