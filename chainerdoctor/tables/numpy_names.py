"""Names that NumPy removed: the first version without it, and what to write instead."""

from __future__ import annotations

from typing import Dict, Tuple

_ALIASES = {"float": "float", "int": "int", "complex": "complex", "object": "object", "str": "str"}
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

#: Absolute name → (the versions without it, what to write). ``numpy.bool`` came back in 2.0, as numpy.bool_.
REMOVED: Dict[str, Tuple[str, str]] = {
    **{f"numpy.{name}": ("1.24 and later", instead) for name, instead in _ALIASES.items()},
    "numpy.bool": ("1.24 to 1.26", "bool"),
    **{f"numpy.{name}": ("2.0 and later", instead) for name, instead in _TWO.items()},
}
