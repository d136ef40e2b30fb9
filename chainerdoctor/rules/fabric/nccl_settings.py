"""Settings of NCCL as the ranks have them, from the environment and from nccl.conf, and the version that reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple

from chainerdoctor.facts import Fact
from chainerdoctor.facts.stack import EnvironmentVariable, NcclVersion, SettingsFile
from chainerdoctor.findings import Evidence
from chainerdoctor.snapshot import Sighting, Snapshot
from chainerdoctor.tables.cuda_drivers import version_key


@dataclass(frozen=True)
class Setting:
    """One value of a variable, where it is set (``source``: its name, or the file too) and by whom it was seen."""

    name: str
    value: str
    source: str
    seen: Tuple[Sighting[Fact], ...]

    def evidence(self, wanted: str) -> Tuple[Evidence, ...]:
        """What is set, beside what should be."""
        return (Evidence(self.source, self.value, wanted),)


def settings_of(snapshot: Snapshot, name: str) -> Tuple[Setting, ...]:
    """Every non-empty value of a variable, in the order in which they were seen.

    The environment outranks files (NCCL user guide), so a file's value is left out for ranks that have the variable.
    """
    found: Dict[Tuple[str, str], List[Sighting[Fact]]] = {}
    own = set()
    for seen in snapshot.all(EnvironmentVariable):
        if seen.fact.name == name and seen.fact.value.strip():
            own.add((seen.node, seen.rank))
            found.setdefault((seen.fact.value.strip(), name), []).append(seen)
    for file in snapshot.all(SettingsFile):
        for key, value in file.fact.settings:
            if key == name and value.strip() and (file.node, file.rank) not in own:
                found.setdefault((value.strip(), f"{name} in {file.fact.path}"), []).append(file)
    return tuple(Setting(name, value, source, tuple(seen)) for (value, source), seen in found.items())


def loaded_version(snapshot: Snapshot) -> Optional[str]:
    """The oldest NCCL that a rank has loaded, ``None`` where none was seen (that ranks differ is told by CD306)."""
    versions = {s.fact.version for s in snapshot.all(NcclVersion) if s.fact.source == "loaded"}
    readable = [version for version in versions if re.fullmatch(r"\d+(\.\d+)+", version)]
    return min(readable, key=version_key) if readable else None
