"""Names that NumPy removed: the first version without it, and what to write instead."""

from __future__ import annotations

from typing import Dict, Tuple

_ALIASES = {"float": "float", "int": "int", "complex": "complex", "object": "object", "str": "str", "bool": "bool"}
#: Release notes of NumPy 2.0, "Expired deprecations" and "Removed members".
_TWO = {
    "float_": "np.float64",
    "complex_": "np.complex128",
    "unicode_": "np.str_",
    "string_": "np.bytes_",
    "NaN": "np.nan",
    "NAN": "np.nan",
    "Inf": "np.inf",
    "Infinity": "np.inf",
    "infty": "np.inf",
    "PINF": "np.inf",
    "NINF": "-np.inf",
    "product": "np.prod",
    "cumproduct": "np.cumprod",
    "alltrue": "np.all",
    "sometrue": "np.any",
    "round_": "np.round",
    "sctypes": "the types by name",
    "cast": "np.asarray(x, dtype=…)",
    "asfarray": "np.asarray(x, dtype=float)",
}

#: Absolute name → (first version without it, what to write). ``numpy.bool`` came back in 2.0 as another type.
REMOVED: Dict[str, Tuple[str, str]] = {
    **{f"numpy.{name}": ("1.24", instead) for name, instead in _ALIASES.items()},
    **{f"numpy.{name}": ("2.0", instead) for name, instead in _TWO.items()},
}
