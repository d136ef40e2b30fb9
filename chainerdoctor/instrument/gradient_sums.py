"""Sums over gradients, in one pass each: NumPy by its dot product, CuPy by one reduction kernel a parameter."""

from __future__ import annotations

import functools
import zlib
from typing import Any, Dict, List, Sequence, Tuple

#: A float32 dot product over this many elements is exact to about 3e-8 (seen, log-normal data; 1e-5 over a million);
#: the blocks' sums are added in float64.
_BLOCK = 4096
#: Elements that a share or a ratio is estimated from: its standard error is then below 0.8 %.
SAMPLE = 4096
#: The smallest normal float16; below it numbers lose digits, below 6e-8 they are zero (IEEE 754 binary16).
HALF_TINY = 2.0**-14


def squares(arrays: Sequence[Any]) -> List[float]:
    """Σx² of each array, in float64: non-finite exactly where the array holds a NaN or infinity, or is beyond float64."""
    import numpy

    if any(type(each) is not numpy.ndarray and _on_gpu(each) for each in arrays):
        return _squares_on_gpu(arrays)
    with numpy.errstate(all="ignore"):
        return [_square(numpy, each) for each in arrays]


def _square(numpy: Any, array: Any) -> float:
    """Of a NumPy array of any float dtype, shape and layout."""
    flat = array.reshape(-1)  # a copy where the layout is not C's
    if flat.dtype != _float32(numpy):
        if flat.dtype != numpy.float16:
            return float(numpy.dot(flat, flat))
        flat = flat.astype(numpy.float32)  # NumPy adds float16 products one at a time, and slowly
    size = flat.size
    if size <= _BLOCK:
        total = float(numpy.dot(flat, flat))
    else:
        whole = size - size % _BLOCK
        blocks = flat[:whole].reshape(-1, 1, _BLOCK)
        total = float(numpy.add.reduce(numpy.matmul(blocks, blocks.reshape(-1, _BLOCK, 1)), axis=None, dtype=float))
        if whole < size:
            rest = flat[whole:]
            total += float(numpy.dot(rest, rest))
    # Finite values above 1e19 overflow in float32, and values below 1e-19 vanish.
    if size and not 1e-30 < total < _INFINITE:
        wide = flat.astype(numpy.float64)
        total = float(numpy.dot(wide, wide))
    return total


_INFINITE = float("inf")


@functools.lru_cache(maxsize=1)
def _float32(numpy: Any) -> Any:
    return numpy.dtype("float32")


def nonfinite(array: Any) -> int:
    """How many elements are NaN or infinite."""
    module = _module(array)
    return int(array.size) - int(module.isfinite(array).sum()) if array.dtype.kind in "fc" else 0


def sample(array: Any) -> Any:
    """A copy of at most :data:`SAMPLE` elements, evenly spaced over the array, 1-d."""
    flat = array.reshape(-1)
    return flat[:: max(1, int(flat.size) // SAMPLE)].copy()


def shares(sampled: Any) -> Tuple[float, float, float]:
    """Of a sample: the share of zeros, the share of non-zeros that float16 would hold as subnormal or zero, and the
    largest magnitude (0 where that is not finite)."""
    if not sampled.size:
        return 0.0, 0.0, 0.0
    module = _module(sampled)
    size = module.abs(sampled)
    zeros, peak = int((sampled == 0).sum()), float(size.max())
    tiny = int(((size < HALF_TINY) & (size > 0)).sum())
    return zeros / sampled.size, tiny / sampled.size, peak if peak - peak == 0.0 else 0.0


def ratio(before: Any, after: Any) -> float:
    """‖after − before‖ / ‖before‖ of two samples; NaN where ``before`` is all zero."""
    first, change = squares([before, after - before])
    return float("nan") if not first > 0 else float((change / first) ** 0.5)


def fingerprint(array: Any) -> List[float]:
    """Numbers that are equal for equal arrays: the CRC-32 of the bytes; on a GPU the sum and the sum of squares."""
    if not array.size:
        return [0]
    if _on_gpu(array):
        return [float(array.astype("float64").sum()), squares([array])[0]]
    import numpy

    return [zlib.crc32(memoryview(numpy.ascontiguousarray(array)).cast("B"))]


def extremes(array: Any) -> Dict[str, Any]:
    """What a reader wants to know of an array: dtype, shape, range, NaN, infinities, zeros. Of its finite elements, the
    least and greatest."""
    module = _module(array)
    told: Dict[str, Any] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if not array.size or array.dtype.kind not in "fiu":
        return told
    finite = array[module.isfinite(array)] if array.dtype.kind == "f" else array
    if finite.size:
        told["min"], told["max"] = float(finite.min()), float(finite.max())
    if array.dtype.kind == "f":
        told["nan"], told["inf"] = int(module.isnan(array).sum()), int(module.isinf(array).sum())
    told["zeros"] = int((array == 0).sum())
    return told


def _on_gpu(array: Any) -> bool:
    return type(array).__module__.startswith("cupy")


def _module(array: Any) -> Any:
    if _on_gpu(array):
        import cupy

        return cupy
    import numpy

    return numpy


_KERNEL: List[Any] = []


def _squares_on_gpu(arrays: Sequence[Any]) -> List[float]:
    """One kernel each on the current stream, and one copy back: the only wait of an iteration."""
    import cupy

    if not _KERNEL:
        _KERNEL.append(
            cupy.ReductionKernel(
                "T x", "float64 y", "(double)x * (double)x", "a + b", "y = a", "0", "chainerdoctor_squares"
            )
        )
    groups: Dict[int, List[int]] = {}
    for number, array in enumerate(arrays):
        groups.setdefault(int(array.device.id) if _on_gpu(array) else -1, []).append(number)
    totals = [0.0] * len(arrays)
    for device, numbers in groups.items():
        if device < 0:
            for number in numbers:
                totals[number] = squares([arrays[number]])[0]
            continue
        with cupy.cuda.Device(device):
            row = cupy.zeros(len(numbers), dtype="float64")
            for at, number in enumerate(numbers):
                if arrays[number].size:
                    _KERNEL[0](arrays[number], row[at : at + 1].reshape(()))
            for number, value in zip(numbers, row.get().tolist()):
                totals[number] = float(value)
    return totals
