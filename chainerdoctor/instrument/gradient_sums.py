"""Sums over gradients, in one pass each: NumPy by its dot product, CuPy by one reduction kernel a parameter."""

from __future__ import annotations

import zlib
from typing import Any, Dict, List, Sequence, Tuple

#: A float32 dot product over this many elements is exact to about 3e-8 (seen, log-normal data; 1e-5 over a million);
#: the blocks' sums are added in float64.
_BLOCK = 4096
#: Elements that a share or a ratio is estimated from: its standard error is then below 0.4 %.
SAMPLE = 16384
#: The smallest normal float16; below it numbers lose digits, below 6e-8 they are zero (IEEE 754 binary16).
HALF_TINY = 2.0**-14


def squares(arrays: Sequence[Any]) -> List[float]:
    """Σx² of each array, in float64: non-finite exactly where the array holds a NaN or infinity, or is beyond float64."""
    if any(_on_gpu(each) for each in arrays):
        return _squares_on_gpu(arrays)
    return [_square(each) for each in arrays]


def _square(array: Any) -> float:
    """Of a NumPy array of any float dtype, shape and layout."""
    import numpy

    flat = array.reshape(-1) if array.flags.c_contiguous else numpy.ascontiguousarray(array).reshape(-1)
    if flat.dtype == numpy.float16:
        flat = flat.astype(numpy.float32)  # NumPy adds float16 products one at a time, and slowly
    size = flat.size
    with numpy.errstate(all="ignore"):
        whole = size - size % _BLOCK if size > _BLOCK and flat.dtype == numpy.float32 else 0
        total = float(numpy.dot(flat[whole:], flat[whole:]))
        if whole:
            blocks = flat[:whole].reshape(-1, 1, _BLOCK)
            total += float(numpy.matmul(blocks, blocks.reshape(-1, _BLOCK, 1)).sum(dtype=numpy.float64))
        if total - total != 0.0 and flat.dtype == numpy.float32:
            wide = flat.astype(numpy.float64)  # finite values above 1e19 overflow in float32
            total = float(numpy.dot(wide, wide))
        elif total < 1e-30 and size and flat.dtype == numpy.float32:
            wide = flat.astype(numpy.float64)  # and values below 1e-19 vanish
            total = float(numpy.dot(wide, wide))
    return total


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
                totals[number] = _square(arrays[number])
            continue
        with cupy.cuda.Device(device):
            row = cupy.zeros(len(numbers), dtype="float64")
            for at, number in enumerate(numbers):
                if arrays[number].size:
                    _KERNEL[0](arrays[number], row[at : at + 1].reshape(()))
            for number, value in zip(numbers, row.get().tolist()):
                totals[number] = float(value)
    return totals
