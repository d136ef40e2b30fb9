"""Every device in turn: allocate, multiply, copy; then every pair of devices.

Run as ``python -m chainerdoctor.workloads.devices DEVICES STEP…`` in a process of its own, because a broken driver may crash or
block it. A step is ``INDEX`` or ``INDEX-OTHER``. Each line on standard output is a JSON object: ``{"at": …}`` before
something begins, ``{"fact": …}`` when it is done.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Callable, Iterator, List, Tuple

from chainerdoctor.codec import fact_to_json
from chainerdoctor.facts import Fact
from chainerdoctor.facts.workload import (
    FROM_PAGEABLE,
    FROM_PINNED,
    TO_PAGEABLE,
    TO_PINNED,
    WITHIN,
    GpuAllocation,
    GpuCopy,
    GpuPeerCopy,
    GpuProduct,
    GpuWorkloadFailed,
)

#: Orders of the matrices that are tried until a product takes long enough to tell a card's speed from a launch's.
ORDERS = (512, 2048, 4096)
LONG_ENOUGH_S = 0.002
#: Bytes of a copy: a third of a millisecond at the least on PCIe, and short beside the time slices of a busy CPU.
COPY_BYTES = 8 * 2**20
ALLOCATION_BYTES = 256 * 2**20
#: The best of so many repeats counts, or of those that fit into so many seconds.
REPEATS = 25
REPEAT_S = 0.3


#: Exit code for "there is nothing to do the steps with"; the reason is the last line on standard error.
CANNOT = 3


def main(arguments: List[str]) -> int:
    """Do the steps that are given after the number of devices; 0 also if some failed, since that was told."""
    steps = arguments[1:]
    try:
        import cupy

        devices = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:
        sys.stderr.write(f"CuPy: {type(error).__name__}: {' '.join(str(error).split())[:200]}\n")
        return CANNOT
    if devices != int(arguments[0]):
        sys.stderr.write(f"CUDA sees {devices} devices and NVML {arguments[0]}: their numbers cannot be matched\n")
        return CANNOT
    for step in steps:
        first, _, second = step.partition("-")
        work = _pair(int(first), int(second)) if second else _device(int(first))
        at = "start"
        try:
            for name, run in work:
                at = name
                _say({"at": [int(first), int(second) if second else None, name]})
                _say({"fact": fact_to_json(run())})
        except Exception as error:
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            failed = GpuWorkloadFailed(int(first), at, reason, False, int(second) if second else None)
            _say({"fact": fact_to_json(failed)})
    return 0


def _say(line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _device(index: int) -> Iterator[Tuple[str, Callable[[], Fact]]]:
    import cupy
    import numpy

    runtime = cupy.cuda.runtime
    yield "allocation", lambda: _allocate(index)
    runtime.setDevice(index)
    with cupy.cuda.Device(index):
        # Before the product: a driver that copies wrongly must not be taken for one that computes wrongly.
        host = _bytes_of(numpy, index)
        pinned = _pinned_like(host)
        device = cupy.empty(host.size, dtype=numpy.uint8)
        other = cupy.empty_like(device)
        back = numpy.empty_like(host)
        pinned_back = _pinned_like(numpy.zeros_like(host))

        def copy(direction: str, target: Any, source: Any, result: Callable[[], Any]) -> GpuCopy:
            best_s = _best_s(lambda: _copy(target, source), _wait)
            wrong = int((result() != host).sum())
            return GpuCopy(index, direction, host.size, wrong, host.size / best_s / 1e9)

        yield FROM_PAGEABLE, lambda: copy(FROM_PAGEABLE, device, host, lambda: cupy.asnumpy(device))
        yield FROM_PINNED, lambda: copy(FROM_PINNED, device, pinned, lambda: cupy.asnumpy(device))
        yield WITHIN, lambda: copy(WITHIN, other, device, lambda: cupy.asnumpy(other))
        yield TO_PAGEABLE, lambda: copy(TO_PAGEABLE, back, device, lambda: back)
        yield TO_PINNED, lambda: copy(TO_PINNED, pinned_back, device, lambda: pinned_back)
        yield "product", lambda: _multiply(index)


def _pair(index: int, other: int) -> Iterator[Tuple[str, Callable[[], Fact]]]:
    yield "peer copy", lambda: _peer_copy(index, other)


def _allocate(index: int) -> GpuAllocation:
    import cupy

    with cupy.cuda.Device(index):
        free, _ = cupy.cuda.runtime.memGetInfo()
        size = min(ALLOCATION_BYTES, free // 4)
        began_s = time.perf_counter()
        pointer = cupy.cuda.runtime.malloc(size)
        cupy.cuda.runtime.free(pointer)
        return GpuAllocation(index, size, time.perf_counter() - began_s)


def _multiply(index: int) -> GpuProduct:
    import cupy
    import numpy

    # Entries of −2…2: sums stay below 2²⁴ in size, so that float32 (and TF32's products) are exact in any order.
    rng = numpy.random.RandomState(1 + index)
    for order in ORDERS:
        left = rng.randint(-2, 3, (order, order)).astype(numpy.float32)
        right = rng.randint(-2, 3, (order, order)).astype(numpy.float32)
        a, b = cupy.asarray(left), cupy.asarray(right)
        result = cupy.empty((order, order), dtype=numpy.float32)
        best_s = _best_s(lambda a=a, b=b, result=result: cupy.dot(a, b, out=result), _wait)  # type: ignore[misc]
        # Freivalds: C·r against A·(B·r), in float64, which holds these numbers exactly; the CPU need not multiply.
        vector = rng.randint(1, 1000, order).astype(numpy.float64)
        wrong = int((cupy.asnumpy(result) @ vector != left @ (right @ vector)).sum())
        if wrong or best_s > LONG_ENOUGH_S:
            break
    return GpuProduct(index, order, wrong, 2 * order**3 / best_s / 1e9)


def _wait() -> None:
    import cupy

    cupy.cuda.get_current_stream().synchronize()


def _peer_copy(index: int, other: int) -> GpuPeerCopy:
    import cupy
    import numpy

    runtime = cupy.cuda.runtime
    host = _bytes_of(numpy, index)
    with cupy.cuda.Device(index):
        source = cupy.asarray(host)
    with cupy.cuda.Device(other):
        target = cupy.zeros(host.size, dtype=numpy.uint8)
        direct = bool(runtime.deviceCanAccessPeer(other, index))
        stream = cupy.cuda.get_current_stream()

        def run() -> None:
            runtime.memcpyPeerAsync(target.data.ptr, other, source.data.ptr, index, host.size, stream.ptr)

        best_s = _best_s(run, stream.synchronize)
        wrong = int((cupy.asnumpy(target) != host).sum())
    return GpuPeerCopy(index, other, direct, host.size, wrong, host.size / best_s / 1e9)


def _bytes_of(numpy: Any, index: int) -> Any:
    """Bytes of no pattern, so that a copy from the wrong place or with a stuck line differs."""
    return numpy.random.RandomState(100 + index).randint(0, 256, COPY_BYTES, dtype=numpy.uint8)


def _pinned_like(array: Any) -> Any:
    import cupy
    import numpy

    memory = cupy.cuda.alloc_pinned_memory(array.nbytes)
    pinned = numpy.frombuffer(memory, dtype=numpy.uint8, count=array.size)
    pinned[...] = array
    return pinned


def _copy(target: Any, source: Any) -> None:
    import cupy

    stream = cupy.cuda.get_current_stream().ptr
    on_device = isinstance(target, cupy.ndarray), isinstance(source, cupy.ndarray)
    # cudaMemcpyKind: 1 host to device, 2 device to host, 3 within the device.
    kind = {(True, False): 1, (False, True): 2, (True, True): 3}[on_device]
    to = target.data.ptr if on_device[0] else target.ctypes.data
    of = source.data.ptr if on_device[1] else source.ctypes.data
    cupy.cuda.runtime.memcpyAsync(to, of, target.nbytes, kind, stream)


def _best_s(run: Callable[[], Any], wait: Callable[[], None]) -> float:
    run()  # warm-up: libraries load, clocks rise
    wait()
    best_s, until_s = float("inf"), time.perf_counter() + REPEAT_S
    for _ in range(REPEATS):
        began_s = time.perf_counter()
        run()
        wait()
        best_s = min(best_s, time.perf_counter() - began_s)
        if began_s > until_s:
            break
    return best_s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
