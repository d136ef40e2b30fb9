"""How NCCL chooses interfaces and reads the patterns of its variables."""

from __future__ import annotations

from typing import Iterator, Optional, Sequence

from chainerdoctor.facts.fabric import NetworkInterface


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
