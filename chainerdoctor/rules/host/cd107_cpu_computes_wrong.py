"""CD107: CPU computes wrong."""

from __future__ import annotations

from typing import Iterator

from chainerdoctor.facts.workload import CpuProduct
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot


@rule("CD107", Severity.ERROR, needs=(CpuProduct,), since="0.1")
def cpu_computes_wrong(snapshot: Snapshot) -> Iterator[Finding]:
    """A product of two small integer matrices by NumPy is not what Python's integers give.

    Why it hurts: every result of that node is in doubt. It is a broken BLAS for this processor, or broken hardware.

    How to mend it: reinstall NumPy (pip install --force-reinstall numpy==…), try OPENBLAS_CORETYPE=Haswell, and run a
    memory test if the fault stays.
    """
    for seen in snapshot.all(CpuProduct):
        if seen.fact.wrong:
            yield Finding(
                where=seen.node,
                message="NumPy computes wrong products here",
                remedy="Reinstall NumPy, try OPENBLAS_CORETYPE=Haswell, and run a memory test if the fault stays.",
                evidence=(Evidence("wrong elements", f"{seen.fact.wrong:,}", "0"),),
            )
