"""Where the time of communication goes, over all ranks of a run. Times are seconds, sums over the iterations looked at
(all but the first) unless a field's name says otherwise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Dict, Optional

from chainerdoctor.facts import Fact


@dataclass(frozen=True)
class CommunicationTime(Fact):
    """One rank's calls of one operation from one place. ``waiting_s`` is the part in which other ranks were still
    missing, ``transfer_s`` the rest. ``unmatched`` calls could not be matched with the other ranks': all of their time
    counts as transfer."""

    operation: str
    place: str
    calls: int
    size_bytes: int
    dtype: str
    waiting_s: float
    transfer_s: float
    unmatched: int


@dataclass(frozen=True)
class Lateness(Fact):
    """What one rank cost the others. ``late_s`` is how long the others had to do without it; where several ranks were
    missing, each has its share of the time. ``cost_s`` is the same times the number of ranks that waited. ``phases_s``
    splits ``late_s`` by what the rank was doing longer than the ranks that waited. In ``latest_in`` of the iterations
    nobody was missed for longer."""

    iterations: int
    latest_in: int
    late_s: float
    cost_s: float
    phases_s: Dict[str, float]


@dataclass(frozen=True)
class RankClock(Fact):
    """This rank's clock minus that of rank 0, and by how much it may be wrong; ``drift_s`` is its change to the end of
    the run (``None``: not measured again). ``shared`` says that both read the same clock, so that nothing was measured."""

    offset_s: float
    uncertainty_s: float
    drift_s: Optional[float]
    shared: bool


@dataclass(frozen=True)
class Scaling(Fact):
    """What the exchange of gradients costs one iteration; means over iterations and ranks.

    ``compute_s`` is an iteration without its communication. ``size_bytes`` is what a rank gives to one exchange,
    ``transfer_s`` how long that took once all ranks were there. ``busbw_gbs`` is 2(n-1)/n times size over time, in
    10^9 B/s, as nccl-tests define it for all-reduce. ``asynchronous`` says that the exchange runs beside the computing.
    """

    ranks: int
    iterations: int
    iteration_s: float
    compute_s: float
    waiting_s: float
    transfer_s: float
    other_communication_s: float
    size_bytes: int
    dtype: str
    busbw_gbs: Optional[float]
    asynchronous: bool

    @property
    def efficiency(self) -> float:
        """Time at one rank's computing alone over the time at this number of ranks."""
        return self.compute_s / self.iteration_s if self.iteration_s else 1.0
