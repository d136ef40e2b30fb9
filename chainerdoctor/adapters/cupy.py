"""CuPy, without a device: what it was built with."""

from __future__ import annotations

from chainerdoctor.adapters.nccl import version_text


def nccl_build_version() -> str:
    """The NCCL version that CuPy's module was compiled against.

    Raises:
        ImportError: this CuPy has no NCCL, or its library cannot be loaded.
    """
    from cupy.cuda import nccl

    return version_text(int(nccl.get_build_version()))
