"""What rules about measured speeds share: who is slower than the others of the same kind."""

from __future__ import annotations

from typing import Dict, Hashable, List, Mapping, Tuple, TypeVar

K = TypeVar("K", bound=Hashable)

#: Fewer than so many cannot say who of them is odd.
FEWEST = 3


def slower_than_peers(speeds: Mapping[K, float], share: float, quantile: float = 0.5) -> Dict[K, Tuple[float, float]]:
    """Those with less than ``share`` of the ``quantile`` of all, as (own, that); nothing with fewer than three."""
    if len(speeds) < FEWEST:
        return {}
    usual = sorted(speeds.values())[min(len(speeds) - 1, int(quantile * len(speeds)))]
    return {who: (speed, usual) for who, speed in speeds.items() if speed < share * usual}


def by_group(rows: Mapping[K, Tuple[Hashable, float]]) -> List[Dict[K, float]]:
    """Speeds sorted into groups that can be compared."""
    groups: Dict[Hashable, Dict[K, float]] = {}
    for who, (group, speed) in rows.items():
        groups.setdefault(group, {})[who] = speed
    return list(groups.values())
