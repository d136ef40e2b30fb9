"""CD205: toolkit newer than driver."""

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
from chainerdoctor.tables.cuda_drivers import exact_driver, oldest_driver, toolkits, version_key


def runs_with_limits(driver: str, toolkit: Optional[str]) -> bool:
    """Whether the driver is between the floor of the toolkit's family and the toolkit's own row."""
    if toolkit is None or toolkit not in toolkits() or not driver.replace(".", "").isdigit():
        return False
    floor, exact = oldest_driver(toolkit), exact_driver(toolkit)
    if floor is None or exact is None:
        return False
    return version_key(floor) <= version_key(driver) < version_key(exact)


@rule(
    "CD205",
    Severity.WARNING,
    needs=(
        GpuDriver,
        MappedLibrary,
    ),
    since="0.1",
)
def toolkit_newer_than_driver(snapshot: Snapshot) -> Iterator[Finding]:
    """The CUDA runtime that is loaded is newer than the driver, within the same major version.

    Why it hurts: it runs by the rule of minor version compatibility, but without features that need the driver, and code
    that is kept as PTX cannot be compiled: "PTX was compiled with an unsupported toolchain".

    How to mend it: install the driver of that toolkit's row, or an older runtime of the same major version.

    Source: CUDA compatibility guide, minor version compatibility; CUDA Toolkit release notes, driver table.
    """
    drivers = {seen.node: seen.fact.version for seen in snapshot.all(GpuDriver)}
    runtimes = [s for s in snapshot.all(MappedLibrary) if s.fact.name == "libcudart" and s.node in drivers]
    newer = [s for s in runtimes if runs_with_limits(drivers[s.node], s.fact.version)]
    for version, sightings in groups(newer, lambda fact: fact.version).items():
        driver = drivers[sightings[0].node]
        yield Finding(
            where=places(sightings),
            message=f"CUDA {version} is newer than driver {driver}",
            remedy=f"Install driver {exact_driver(version)} or newer, or pip install an older nvidia-cuda-runtime.",
            evidence=(Evidence("driver", driver, f"{exact_driver(version)} for all features"),),
        )
