"""CD409: mpi not cuda aware."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.mpi import MpiWorld
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD409", Severity.INFO, needs=(MpiWorld, GpuDriver), since="0.1")
def mpi_not_cuda_aware(snapshot: Snapshot) -> Iterator[Finding]:
    """This MPI cannot send from GPU memory.

    Why it hurts: the communicators flat and, on GPUs, naive hand device pointers to MPI; without CUDA awareness the
    run ends in a segmentation fault ("Invalid permissions" in MPI_Alltoall). pure_nccl and non_cuda_aware do not
    need it.

    How to mend it: use pure_nccl, or an MPI that was built with CUDA (ompi_info --parsable -l 9 --all | grep
    mpi_built_with_cuda_support:value).

    Source: chainer/chainermn issue 64.
    """
    with_gpus = {seen.node for seen in snapshot.all(GpuDriver) if seen.fact.gpus}
    unaware = [s for s in snapshot.all(MpiWorld) if s.fact.cuda_aware is False and s.node in with_gpus]
    if unaware:
        yield Finding(
            where=places(unaware),
            message="MPI is not CUDA-aware: the communicators flat and naive cannot be used with GPU arrays",
            remedy="Use create_communicator('pure_nccl') on GPUs.",
            evidence=(Evidence("MPIX_Query_cuda_support", "0", "1, or pure_nccl"),),
        )
