"""Names that NumPy removed and that Chainer and programs of its time use."""

from __future__ import annotations

from typing import Dict, Tuple

from chainerdoctor.compat.patches import AtStart, version_of


def _needed() -> bool:
    return version_of("numpy") >= (1, 24)


def _names() -> Dict[str, object]:
    """Every name with exactly what it was; NumPy's own objects, so nothing is computed in another way."""
    import numpy as np

    return {
        # NumPy 2.0. Chainer: functions/array/as_strided.py, on import.
        "sctypes": {
            "int": [np.int8, np.int16, np.int32, np.int64],
            "uint": [np.uint8, np.uint16, np.uint32, np.uint64],
            "float": [np.float16, np.float32, np.float64, np.longdouble],
            "complex": [np.complex64, np.complex128, np.clongdouble],
            "others": [bool, object, bytes, str, np.void],
        },
        # NumPy 1.24 removed the aliases of Python's own types. Chainer: functions/array/resize_images.py (float).
        "bool": bool,
        "int": int,
        "float": float,
        "complex": complex,
        "object": object,
        "str": str,
        # NumPy 2.0, second names of what is still there. Not in Chainer; in the training scripts of its time.
        "float_": np.float64,
        "complex_": np.complex128,
        "unicode_": np.str_,
        "string_": np.bytes_,
        "NaN": np.nan,
        "NAN": np.nan,
        "Inf": np.inf,
        "Infinity": np.inf,
        "infty": np.inf,
        "PINF": np.inf,
        "NINF": -np.inf,
        "product": np.prod,
        "cumproduct": np.cumprod,
        "alltrue": np.all,
        "sometrue": np.any,
        "round_": np.round,
        "row_stack": np.vstack,
    }


def _give_back() -> Tuple[str, ...]:
    import numpy as np

    have = vars(np)
    done = []
    for name, value in _names().items():
        # NumPy 2 has a `bool` again (its own scalar type): what is there stays.
        if name not in have:
            setattr(np, name, value)
            done.append(f"numpy.{name}")
    return tuple(done)


PATCHES = (
    AtStart(
        name="numpy names",
        why="NumPy 1.24 and 2.0 removed aliases (np.float, np.sctypes ...); Chainer uses two of them, scripts the others",
        needed=_needed,
        apply=_give_back,
    ),
)
