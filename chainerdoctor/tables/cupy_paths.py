"""Private places of CuPy that scripts import, and where they are today. Seen in cupy-cuda12x 12.3, 13.6 and 14.2."""

from __future__ import annotations

from typing import Tuple

#: (old name, first version without it as far as is known, what to write).
MOVED: Tuple[Tuple[str, str, str], ...] = (
    ("cupy.core", "10", "cupy._core (private), or the public function of cupy"),
    ("cupy.util", "10", "cupy._util (private)"),
    ("cupy.sparse", "14", "cupyx.scipy.sparse"),
)

#: The same for modules that ``from cupy.cuda import cublas`` still finds, but ``import cupy.cuda.cublas`` does not.
MOVED_MODULES: Tuple[Tuple[str, str, str], ...] = tuple(
    (f"cupy.cuda.{name}", "8", f"from cupy_backends.cuda.{folder} import {name}")
    for name, folder in (
        ("cublas", "libs"),
        ("curand", "libs"),
        ("cusolver", "libs"),
        ("cusparse", "libs"),
        ("nvrtc", "libs"),
        ("driver", "api"),
    )
)

#: What CuPy 14 no longer has, because it has no cuDNN.
CUDNN: Tuple[str, ...] = ("cupy.cudnn", "cupy.cuda.cudnn", "cupy_backends.cuda.libs.cudnn")
