"""What ``chainer.backends.cuda`` says, and the error that it swallowed on import."""

from __future__ import annotations

from chainerdoctor.facts.stack import ChainerCuda


def cuda_state() -> ChainerCuda:
    """The state after import. Chainer keeps the reason for "CuPy: Not Available" in ``_resolution_error``.

    Raises:
        Exception: whatever importing Chainer raises.
    """
    from chainer.backends import cuda

    hidden = getattr(cuda, "_resolution_error", None)
    return ChainerCuda(
        available=bool(cuda.available),
        cudnn_enabled=bool(cuda.cudnn_enabled),
        hidden_error="" if hidden is None else f"{type(hidden).__name__}: {hidden}",
    )
