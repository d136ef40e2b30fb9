"""How NCCL chooses interfaces and reads the patterns of its variables."""

from __future__ import annotations

from typing import Dict, Iterable, Iterator, Optional, Sequence, Set, Tuple

from chainerdoctor.consensus import groups, places
from chainerdoctor.facts.fabric import NetworkInterface
from chainerdoctor.facts.stack import EnvironmentVariable
from chainerdoctor.findings import Evidence, Finding
from chainerdoctor.snapshot import Snapshot


def would_choose(interfaces: Sequence[NetworkInterface]) -> Optional[NetworkInterface]:
    """The interface that NCCL takes without NCCL_SOCKET_IFNAME; ``interfaces`` in the kernel's order.

    NCCL tries names that start with ``ib``, then all except ``docker*`` and ``lo*``, then ``docker*``, then ``lo*``
    (ncclFindInterfaces in misc/socket.cc), and takes the first that is up and has an address.
    """
    usable = [i for i in interfaces if i.up and i.addresses]
    for wanted in (
        lambda name: name.startswith("ib"),
        lambda name: not name.startswith(("docker", "lo")),
        lambda name: name.startswith("docker"),
        lambda name: name.startswith("lo"),
    ):
        for interface in usable:
            if wanted(interface.name):
                return interface
    return None


def matches(pattern: str, name: str) -> bool:
    """Whether NCCL's pattern takes this name: prefixes separated by commas, ``=`` for exact, ``^`` to exclude."""
    exclude = pattern.startswith("^")
    pattern = pattern.lstrip("^")
    exact = pattern.startswith("=")
    # Adapters are written with a port (mlx5_0:1); the port does not belong to the name.
    names = [part.partition(":")[0] for part in pattern.lstrip("=").split(",") if part]
    hit = any(name == part if exact else name.startswith(part) for part in names)
    return hit != exclude


def exact_names(pattern: str) -> Iterator[str]:
    """The names in a pattern that matches by prefix; nothing for ``=`` and ``^``, which say what they mean."""
    if not pattern.startswith(("^", "=")):
        for part in pattern.split(","):
            name = part.partition(":")[0].strip()
            if name:
                yield name


def names_more(snapshot: Snapshot, variable: str, present: Iterable[Tuple[str, str]]) -> Iterator[Finding]:
    """Findings where a name in ``variable`` is an existing one and also the beginning of others.

    ``present`` are (node, name) of what there is. A name that exists nowhere is meant as a prefix (``eth``).
    """
    by_node: Dict[str, Set[str]] = {}
    for where, name in present:
        by_node.setdefault(where, set()).add(name)
    settings = [seen for seen in snapshot.all(EnvironmentVariable) if seen.fact.name == variable]
    for value, sightings in groups(settings, lambda fact: fact.value).items():
        for name in exact_names(value):
            node = next((s.node for s in sightings if name in by_node.get(s.node, set())), None)
            also = sorted(n for n in by_node.get(node or "", ()) if n.startswith(name) and n != name)
            if node is not None and also:
                yield Finding(
                    where=places([s for s in sightings if s.node == node]),
                    message=f"{variable}={value} also matches {', '.join(also)}",
                    remedy=f'Write {variable}=={name} (the value "={name}") to match exactly, or exclude with ^.',
                    evidence=(Evidence(variable, value, f"={name}"), Evidence("also matched", ", ".join(also))),
                )
