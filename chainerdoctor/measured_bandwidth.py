"""Timings of all ranks → rows of a table, and who is slow. Pure functions over a snapshot."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from typing import Dict, Iterable, List, Optional, Tuple

from chainerdoctor.facts.bandwidth import AllreduceTiming, BenchSetup, PairTiming, Waiting
from chainerdoctor.scaling import Fit, algbw_gbs, busbw_gbs, fit
from chainerdoctor.snapshot import Snapshot


@dataclass(frozen=True)
class Row:
    """One size, all ranks. ``median_s`` is the mean of the ranks' medians (as nccl-tests averages over ranks),
    ``slowest_rank`` the one with the largest; ``wrong`` the sum over ranks, ``None`` if unchecked."""

    backend: str
    dtype: str
    size_bytes: int
    count: int
    in_place: bool
    ranks: int
    told: int
    repeats: int
    min_s: float
    median_s: float
    p95_s: float
    max_s: float
    variation: float
    slowest_rank: int
    wrong: Optional[int]
    algbw_gbs: float
    busbw_gbs: float


def rows_of(snapshot: Snapshot) -> List[Row]:
    """Rows by size, out of place before in place."""
    setups = snapshot.all(BenchSetup)
    ranks = setups[0].fact.ranks if setups else 0
    grouped: Dict[Tuple[int, bool, str], List[Tuple[int, AllreduceTiming]]] = {}
    for seen in snapshot.all(AllreduceTiming):
        fact = seen.fact
        grouped.setdefault((fact.size_bytes, fact.in_place, fact.backend), []).append((seen.rank or 0, fact))
    rows = []
    for (size, in_place, backend), told in sorted(grouped.items()):
        median = statistics.fmean(fact.median_s for _, fact in told)
        checked = [fact.wrong for _, fact in told if fact.wrong is not None]
        rows.append(
            Row(
                backend=backend,
                dtype=told[0][1].dtype,
                size_bytes=size,
                count=told[0][1].count,
                in_place=in_place,
                ranks=ranks,
                told=len(told),
                repeats=min(fact.repeats for _, fact in told),
                min_s=min(fact.min_s for _, fact in told),
                median_s=median,
                p95_s=max(fact.p95_s for _, fact in told),
                max_s=max(fact.max_s for _, fact in told),
                variation=max(fact.variation for _, fact in told),
                slowest_rank=max(told, key=lambda each: each[1].median_s)[0],
                wrong=sum(checked) if checked else None,
                algbw_gbs=algbw_gbs(size, median),
                busbw_gbs=busbw_gbs(size, median, ranks),
            )
        )
    return rows


def fit_of(rows: List[Row]) -> Optional[Fit]:
    """The latency-bandwidth model through the out-of-place rows."""
    return fit([(row.size_bytes, row.median_s) for row in rows if not row.in_place])


@dataclass(frozen=True)
class Slow:
    """Who is slow, if anybody: ``ranks`` towards most others, ``links`` between two, ``late`` to collectives.
    ``times`` says by how much, as a multiple of a usual pair."""

    ranks: Tuple[int, ...]
    links: Tuple[Tuple[int, int], ...]
    late: Tuple[int, ...]
    times: Dict[Tuple[int, int], float]


#: A pair is slow if its best in every pass is at least so much longer than a usual pair's …
SLOW = 1.5
#: … where ranks share processors (they then wait for their turn, which takes many times a message's own time) …
SLOW_IF_CROWDED = 6.0
#: … and by this factor beyond what the faster half of the pairs, surely healthy, differ among themselves.
BEYOND_SPREAD = 1.3
#: A rank is slow if so large a share of its pairs is.
MOST_OF_ITS_PAIRS = 0.6
#: A rank is late if it came last in so large a share of the rounds, and the others waited much longer than it.
USUALLY_LAST = 0.6
LATE_S = 0.002


def slow_ones(snapshot: Snapshot) -> Slow:
    """The verdict from pairs and waiting."""
    best = {(fact.rank, fact.other): fact for fact in (seen.fact for seen in snapshot.all(PairTiming))}
    late = _late([seen.fact for seen in snapshot.all(Waiting)])
    if len(best) < 3:
        return Slow((), (), late, {})
    usual, least = usual_and_slow((fact.best_s for fact in best.values()), oversubscribed(snapshot))
    times = {pair: fact.best_s / usual for pair, fact in best.items()}
    slow = {
        pair for pair, fact in best.items() if all(each > least for each in fact.passes_s) and len(fact.passes_s) > 1
    }
    of_rank: Dict[int, List[Tuple[int, int]]] = {}
    for pair in best:
        for rank in pair:
            of_rank.setdefault(rank, []).append(pair)
    ranks = [
        rank
        for rank, pairs in sorted(of_rank.items())
        if len(pairs) > 1 and sum(pair in slow for pair in pairs) >= max(2, MOST_OF_ITS_PAIRS * len(pairs))
    ]
    links = sorted(pair for pair in slow if not set(pair) & set(ranks))
    return Slow(tuple(ranks), tuple(links), late, times)


def oversubscribed(snapshot: Snapshot) -> bool:
    """Whether a node runs more ranks than it has processors for them."""
    setups = snapshot.all(BenchSetup)
    ranks = Counter(seen.node for seen in setups)
    return any(seen.fact.processors is not None and ranks[seen.node] > seen.fact.processors for seen in setups)


def usual_and_slow(bests_s: Iterable[float], crowded: bool) -> Tuple[float, float]:
    """(seconds of a usual pair, seconds beyond which a pair is slow) from the best of every pair.

    Quantiles below the middle only: one slow node of three has more than half of all pairs.
    """
    ordered = sorted(bests_s)
    usual = ordered[len(ordered) // 4]
    spread = ordered[int(0.45 * len(ordered))] / ordered[int(0.05 * len(ordered))]
    return usual, usual * max(SLOW_IF_CROWDED if crowded else SLOW, BEYOND_SPREAD * spread**1.5)


def _late(waits: List[Waiting]) -> Tuple[int, ...]:
    if len(waits) < 2:
        return ()
    usual = statistics.median(fact.wait_s for fact in waits)
    return tuple(
        fact.rank
        for fact in waits
        if fact.came_last >= USUALLY_LAST * fact.rounds and usual - fact.wait_s > max(LATE_S, 0.5 * fact.work_s)
    )


def power(snapshot: Snapshot, slower: float, passes: int = 4, samples: int = 2000) -> Optional[float]:
    """How likely a link that is ``slower`` times as slow is found with this run's own noise; ``None`` without pairs.

    The noise samples of all pairs are times over their own median. A pass keeps the best of several; the link is found
    if the best of every pass, times ``slower``, stays above the threshold. Drawn by a fixed sequence, so that the same
    snapshot gives the same figure.
    """
    noise = [each for seen in snapshot.all(PairTiming) for each in seen.fact.noise]
    if len(noise) < 20:
        return None
    bests = [seen.fact.best_s for seen in snapshot.all(PairTiming)]
    usual, least = usual_and_slow(bests, oversubscribed(snapshot))
    best = _draws(noise, 6, samples)
    middle = sorted(best)[len(best) // 2]
    found = sum(each / middle * slower > least / usual for each in best) / len(best)
    return found**passes


def _draws(noise: List[float], repeats: int, samples: int) -> List[float]:
    state, drawn = 1, []
    for _ in range(samples):
        best = float("inf")
        for _ in range(repeats):
            state = (1103515245 * state + 12345) % 2**31  # the C standard's example generator
            best = min(best, noise[state % len(noise)])
        drawn.append(best)
    return drawn
