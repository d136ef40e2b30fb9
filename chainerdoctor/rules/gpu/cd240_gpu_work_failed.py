"""CD240: GPU work failed."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.workload import GpuAllocation, GpuWorkloadFailed
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.rules.gpu.devices import device_list
from chainerdoctor.snapshot import Snapshot


@rule("CD240", Severity.ERROR, needs=(GpuAllocation, GpuWorkloadFailed), since="0.1", any_of=True)
def gpu_work_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """A short computation or copy on a GPU raised an error, crashed, or did not end.

    Why it hurts: training on that GPU will do the same, some of it only after hours.

    How to mend it: follow the error: out of memory means somebody else uses the GPU (nvidia-smi); an illegal address,
    an uncorrectable ECC error or no answer mean that the card has to be reset (nvidia-smi --gpu-reset) or the node
    restarted; see dmesg for the Xid.
    """
    for seen in snapshot.all(GpuWorkloadFailed):
        fact = seen.fact
        numbers = [fact.index] if fact.other is None else [fact.index, fact.other]
        fate = "does not end" if fact.hung else "fails"
        yield Finding(
            where=f"{seen.node}/{device_list(numbers)}",
            message=f"short work on the GPU {fate} ({fact.step})",
            remedy="Look at dmesg for an Xid and at nvidia-smi for other processes; reset the GPU or restart the node.",
            evidence=(Evidence(fact.step, fact.reason, "done"),),
        )
