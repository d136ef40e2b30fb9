"""Short computations whose results are checked: on every GPU, or, where none is seen, on the CPU."""

from __future__ import annotations

import importlib.util
import re
import signal
import subprocess
import sys
import time
from typing import Iterator

from chainerdoctor.adapters.nvml import open_nvml
from chainerdoctor.adapters.nvml_readings import Refusal
from chainerdoctor.facts import ABSENT, UNSUPPORTED, Fact
from chainerdoctor.facts.workload import CpuProduct, GpuAllocation, GpuCopy, GpuPeerCopy, GpuProduct, GpuWorkloadFailed
from chainerdoctor.host import Host
from chainerdoctor.probes import ACTIVE, NODE, WORK, Probe, Unseen
from chainerdoctor.probes.gpu_asking import Questions
from chainerdoctor.workloads import cpu
from chainerdoctor.workloads.overseer import CannotRun, run_steps

_DEADLINE_S = 45.0
#: Pairs of devices that are tried; all of those of a machine with eight.
_MOST_PAIRS = 56
_NVML_PATIENCE_S = 10.0
_IMPORT_PATIENCE_S = 15.0


def count_gpus() -> int:
    """GPUs of this node as NVML counts them; 0 also where it does not answer, which is the GPU probe's to tell."""
    nvml = Questions(_NVML_PATIENCE_S).one("nvmlInit", open_nvml)
    if isinstance(nvml, Refusal):
        return 0
    count = Questions(_NVML_PATIENCE_S).one("nvmlDeviceGetCount", nvml.device_count)
    return 0 if isinstance(count, Refusal) else count


def why_no_nccl(host: Host) -> str:
    """Empty if CuPy's NCCL module can be imported here, else the reason. Asked in a process of its own: a broken CuPy
    that crashes must not take MPI's process, and with it all ranks, down."""
    if importlib.util.find_spec("cupy") is None:
        return "CuPy is not installed"
    try:
        ran = host.run((sys.executable, "-c", "from cupy.cuda import nccl; nccl.get_version()"), _IMPORT_PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"CuPy's NCCL: {type(error).__name__}"
    if ran.status == 0:
        return ""
    if ran.status < 0:
        return f"CuPy's NCCL: importing it ends the process by {signal.Signals(-ran.status).name}"
    # CuPy frames its explanation with lines of signs; the error's own line says most.
    lines = [line.strip() for line in ran.err.splitlines() if any(sign.isalpha() for sign in line)]
    said = next(
        (line for line in lines if re.match(r"\w*(Error|Exception)\b", line)), lines[-1] if lines else "no reason"
    )
    return f"CuPy's NCCL: {said[:200]}"


def devices(host: Host) -> Iterator[Fact]:
    """Every device, then every pair of them in both directions."""
    count = count_gpus()
    if not count:
        raise Unseen(ABSENT, "no GPU is seen")
    steps = [str(index) for index in range(count)]
    pairs = [f"{one}-{two}" for one in range(count) for two in range(count) if one != two]
    try:
        yield from run_steps(count, [*steps, *pairs[:_MOST_PAIRS]], time.monotonic() + _DEADLINE_S - 3.0)
    except CannotRun as reason:
        raise Unseen(UNSUPPORTED if "NVML" in str(reason) else ABSENT, str(reason)) from None


def processor(host: Host) -> Iterator[Fact]:
    """The CPU's product, where there is no GPU that trains."""
    if count_gpus():
        raise Unseen(UNSUPPORTED, "the GPUs were tried instead")
    try:
        yield cpu.multiply()
    except ImportError as error:
        raise Unseen(ABSENT, f"{type(error).__name__}: {error}") from None


PROBES = (
    Probe(
        "gpu_workload",
        NODE,
        _DEADLINE_S,
        (GpuAllocation, GpuProduct, GpuCopy, GpuPeerCopy, GpuWorkloadFailed),
        devices,
        wave=WORK,
        when=ACTIVE,
    ),
    Probe("cpu_workload", NODE, 20.0, (CpuProduct,), processor, when=ACTIVE),
)
