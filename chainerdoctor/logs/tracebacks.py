"""Python tracebacks of Chainer, CuPy, NumPy and mpi4py, and what a training program prints beside them."""

from __future__ import annotations

import re
from typing import Tuple

from chainerdoctor.logs.wordings import Wording, wording

WORDINGS: Tuple[Wording, ...] = (
    wording("mpi.singleton", "num process (comm_world)", r"Num process \(COMM_WORLD\): (?P<size>\d+)\s*$", "size"),
    wording(
        "python.gpu_memory",
        "out of memory",
        r"[Oo]ut of memory (?:to allocate|allocating) (?P<wanted>[\d,]+) bytes(?: \((?:total"
        r"|allocated so far:) (?P<total>[\d,]+) bytes)?",
    ),
    wording("python.gpu_memory", "memoryallocation", r"cudaErrorMemoryAllocation"),
    wording("python.gpu_memory", "error_out_of_memory", r"CUDA_ERROR_OUT_OF_MEMORY"),
    wording(
        "python.no_nccl",
        "nccl",
        r"(?:requires NCCL \d[^,]{0,10}, but NCCL is not available|NCCL is not available|requires NCCL)",
    ),
    wording(
        "python.removed_communicator", "unrecognized communicator", r"Unrecognized communicator: \"?(?P<name>\w{1,40})"
    ),
    wording(
        "python.library_missing",
        "cannot open shared object",
        r"(?P<library>lib(?:cu|nv|nccl|mpi)[\w.+-]{1,60}): cannot open shared object file",
    ),
    wording("python.library_missing", "not correctly set up", r"CUDA environment is not correctly set up"),
    wording("python.library_missing", "no module named 'cupy", r"No module named '(?P<module>cupy[\w.]{0,60})'"),
    wording(
        "python.library_missing", "has no attribute 'cupy'", r"module' ?(?:object )?has no attribute '(?P<module>cupy)'"
    ),
    wording("python.library_missing", "cupy", r"module 'cupy\w{0,20}' has no attribute '(?P<module>\w{1,40})'"),
    wording("python.numpy", "was removed in the numpy", r"`?np\.(?P<name>\w{1,40})`? was removed in the NumPy"),
    wording("python.numpy", "module 'numpy' has no attribute", r"module 'numpy' has no attribute '(?P<name>\w{1,40})'"),
    wording("python.numpy", "not a valid numpy version", r"Not a valid numpy version string"),
    wording("python.setuptools", "no module named", r"No module named '(?P<name>pkg_resources|distutils[\w.]{0,40})'"),
    wording("python.nccl_error", "nccl_error", r"NCCL_ERROR_\w{1,40}: ?(?P<why>.{1,80})"),
    wording("python.nccl_error", "ncclerror", r"NcclError: (?P<why>.{1,80})"),
    wording("python.invalid_device", "invalid device ordinal", r"invalid device ordinal"),
    wording("python.driver", "insufficient", r"cudaErrorInsufficientDriver|CUDA driver version is insufficient"),
    wording("python.architecture", "gpu-architecture", r"invalid value for --gpu-architecture"),
    wording(
        "python.illegal_address",
        "illegal",
        r"(?:cudaErrorIllegalAddress|CUDA_ERROR_ILLEGAL_ADDRESS|an illegal memory access was encountered)",
    ),
    wording("python.device_assert", "device-side assert", r"device-side assert triggered"),
    wording("python.pickle_limit", "overflowerror", r"OverflowError: integer \d+ does not fit in '(?:int|MPI_Count)'"),
    wording("python.start_method", "context has already been set", r"context has already been set"),
    wording("python.cuda_before_fork", "multiprocessparallelupdater", r"CUDA context has been already initialized"),
    wording("python.mixed_arrays", "incompatible array types", r"incompatible array types are mixed"),
    wording("python.dtype", "allreduce_grad_dtype", r"allreduce_grad_dtype is only available"),
    wording(
        "python.cuda_error", "cudaerror", r"(?:CUDARuntimeError|CUDADriverError): (?P<code>\w{1,60}): (?P<why>.{1,80})"
    ),
    wording(
        "python.chainer_loop", "exception in main training loop", r"Exception in main training loop: (?P<why>.{1,120})"
    ),
    wording("python.traceback", "traceback (most recent call last)", r"Traceback \(most recent call last\):"),
)

#: An exception's line at the end of a traceback; looked for only after one has begun.
EXCEPTION = re.compile(
    r"(?P<kind>(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt|Exit|Failure"
    r"|Abort))(?:: (?P<why>.{0,200}))?$"
)

#: Lines that a Python program with Chainer prints; they make a file "training output" but say nothing.
PLAIN = re.compile(
    r"  File \"[^\"]{1,300}\", line \d|epoch +(?:iteration +)?main/loss|Num process \(COMM_WORLD\)"
    r"|Using \w{1,30} communicator"
    r"|Traceback \(most|\S{1,200}\.py:\d{1,6}: \w{1,40}Warning:"
)
