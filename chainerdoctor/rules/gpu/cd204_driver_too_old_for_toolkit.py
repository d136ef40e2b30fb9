"""CD204: driver too old for toolkit."""

from __future__ import annotations

from typing import Iterator, Optional

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.gpu import (
    GpuDriver,
)
from chainerdoctor.facts.stack import MappedLibrary
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot
from chainerdoctor.tables.cuda_drivers import oldest_driver, version_key


def too_old(driver: str, toolkit: Optional[str]) -> bool:
    """Whether the driver is too old for the toolkit; no where one of them is not in the tables."""
    if toolkit is None or not driver.replace(".", "").isdigit():
        return False
    oldest = oldest_driver(toolkit)
    return oldest is not None and version_key(driver) < version_key(oldest)


@rule(
    "CD204",
    Severity.ERROR,
    needs=(
        GpuDriver,
        MappedLibrary,
    ),
    since="0.1",
)
def driver_too_old_for_toolkit(snapshot: Snapshot) -> Iterator[Finding]:
    """The CUDA runtime that is loaded needs a newer driver than the node has.

    Why it hurts: the first CUDA call ends in cudaErrorInsufficientDriver. Any 11.x runs from driver 450.80.02 on, any 12.x
    from 525 and any 13.x from 580; older toolkits need exactly the driver of their row.

    How to mend it: install a newer driver, or the CuPy that fits the driver: chainerdoctor prescribe names the set.

    Source: CUDA compatibility guide, minor version compatibility; CUDA Toolkit release notes, driver table.
    """
    drivers = {seen.node: seen.fact.version for seen in snapshot.all(GpuDriver)}
    runtimes = [s for s in snapshot.all(MappedLibrary) if s.fact.name == "libcudart" and s.node in drivers]
    wrong = [s for s in runtimes if too_old(drivers[s.node], s.fact.version)]
    for version, sightings in groups(wrong, lambda fact: fact.version).items():
        driver = drivers[sightings[0].node]
        yield Finding(
            where=places(sightings),
            message=f"CUDA {version} does not run on driver {driver}",
            remedy=f"Install driver {oldest_driver(version)} or newer, or a CuPy for an older CUDA (chainerdoctor prescribe).",
            evidence=(Evidence("driver", driver, f"{oldest_driver(version)} or newer"),),
        )
