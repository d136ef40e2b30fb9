"""CD511: cudnn unused."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.consensus import places
from chainerdoctor.facts.gpu import GpuDriver
from chainerdoctor.facts.stack import ChainerCuda, Distribution
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD511", Severity.WARNING, needs=(ChainerCuda, GpuDriver), since="0.1")
def cudnn_unused(snapshot: Snapshot) -> Iterator[Finding]:
    """Chainer can use the GPU and not cuDNN.

    Why it hurts: convolutions fall back to im2col and a matrix product: several times slower, with a column buffer
    of about kernel height × kernel width times the input. CuPy 14 has no cuDNN any more; CuPy 12 and 13 link
    libcudnn.so.8, and cuDNN 9 has another name.

    How to mend it: stay on cupy-cuda12x 13.6.0 or older, and install cuDNN 8.9 (pip install
    nvidia-cudnn-cu12==8.9.7.29) with its lib folder on LD_LIBRARY_PATH.

    Source: CuPy 14 release notes; seen with CuPy 12.3, 13.6 and 14.2.
    """
    without = [s for s in snapshot.all(ChainerCuda) if s.fact.available and not s.fact.cudnn_enabled]
    if not without:
        return
    cupy = next(
        (
            f"{s.fact.name} {s.fact.version}"
            for s in snapshot.all(Distribution)
            if s.fact.name.startswith("cupy") and (s.node, s.rank) == (without[0].node, without[0].rank)
        ),
        "unknown",
    )
    yield Finding(
        where=places(without),
        message="convolutions will run without cuDNN",
        remedy="Install cuDNN 8 (pip install nvidia-cudnn-cu12==8.9.7.29, its lib folder on LD_LIBRARY_PATH) and CuPy below 14.",
        evidence=(
            Evidence("chainer.backends.cuda.cudnn_enabled", "False", "True"),
            Evidence("CuPy", cupy, "13.6.0 or older"),
        ),
    )
