"""What CUDA_VISIBLE_DEVICES shows to each rank, and how many ranks a node has."""

from __future__ import annotations

from typing import Dict, Iterator, Tuple

from chainerdoctor.facts.gpu import Gpu
from chainerdoctor.facts.mpi import LaunchedAs
from chainerdoctor.facts.stack import EnvironmentVariable
from chainerdoctor.snapshot import Snapshot


def local_ranks(snapshot: Snapshot) -> Dict[str, int]:
    """Ranks of each node, as the launcher told them (or as they were seen, where it did not)."""
    told: Dict[str, int] = {}
    seen_on: Dict[str, int] = {}
    for seen in snapshot.all(LaunchedAs):
        seen_on[seen.node] = seen_on.get(seen.node, 0) + 1
        told[seen.node] = max(told.get(seen.node, 0), seen.fact.local_size or 0)
    return {node: told[node] or count for node, count in seen_on.items()}


def visible_to(snapshot: Snapshot) -> Iterator[Tuple[str, int, str]]:
    """(node, rank, value of CUDA_VISIBLE_DEVICES) for every rank that has it."""
    for seen in snapshot.all(EnvironmentVariable):
        if seen.fact.name == "CUDA_VISIBLE_DEVICES" and seen.rank is not None:
            yield seen.node, seen.rank, seen.fact.value


def resolve(snapshot: Snapshot, node: str, variable: str) -> Tuple[int, ...]:
    """Indices of the devices that the list names, in its order; CUDA stops at the first entry that it cannot find.

    An entry is a number or the beginning of a UUID that fits one device (CUDA C++ programming guide, "CUDA Environment
    Variables"). Numbers are taken for NVML's order, which is that of CUDA_DEVICE_ORDER=PCI_BUS_ID.
    """
    uuids = {seen.fact.index: seen.fact.uuid for seen in snapshot.all(Gpu) if seen.node == node}
    found = []
    for word in (part.strip() for part in variable.split(",")):
        if word.isdigit() and int(word) in uuids:
            found.append(int(word))
            continue
        matching = [index for index, uuid in uuids.items() if word.startswith("GPU-") and uuid.startswith(word)]
        if len(matching) != 1:
            break
        found.append(matching[0])
    return tuple(found)
