"""CD650: rank makes others wait."""

from __future__ import annotations

import statistics
from typing import Iterator

from chainerdoctor.facts.comm import Lateness, RankClock, Scaling
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

#: Share of an iteration for which a rank has to be missed.
_SHARE = 0.05
#: A rank is late by itself, and not as ranks take turns, if it is so many times as late as the median of the others.
_TIMES = 3.0
#: It is so as a rule, …
_AS_A_RULE = 0.6
#: … or so much of it is in one phase (an extension that runs now and then). What a busy host's scheduler takes away is
#: neither: it hits now one rank, now another, in whatever it is doing.
_IN_ONE_PHASE = 0.7
#: What a busy host's scheduler does by itself, in seconds of an iteration.
_LEAST_S = 1e-3
_REMEDIES = {
    "data": "Load data faster on that rank: more loader processes, a local copy of the data, equal shards.",
    "extension": "Run that rank's extensions less often, or move their work off the training's path.",
    "evaluation": "Spread the evaluation over the ranks with create_multi_node_evaluator, or run it less often.",
    "forward": "Compare that rank's GPU and host with the others' (chainerdoctor check-cluster), and its batches' sizes.",
    "backward": "Compare that rank's GPU and host with the others' (chainerdoctor check-cluster), and its batches' sizes.",
}
_OTHERWISE = "Look at what the training script does on that rank only, and at the load of its host."


@rule("CD650", Severity.WARNING, needs=(Lateness, Scaling), since="0.1")
def rank_makes_others_wait(snapshot: Snapshot) -> Iterator[Finding]:
    """One rank comes to the collectives later than the others, iteration after iteration.

    Why it hurts: all ranks go at the pace of the last one. Time in a collective, as it is usually measured, is long on
    every rank but the one at fault.

    How to mend it: the finding names the phase in which that rank spends more time than those that wait for it.
    """
    scaling = snapshot.all(Scaling)[0].fact
    seen = snapshot.all(Lateness)
    uncertain_s = max((each.fact.uncertainty_s for each in snapshot.all(RankClock)), default=0.0)
    for each in seen:
        late = each.fact
        if not late.iterations or len(seen) < 2:
            continue
        per_iteration_s = late.late_s / late.iterations
        others = statistics.median(other.fact.late_s for other in seen if other is not each)
        floor_s = max(_SHARE * scaling.iteration_s, 2 * uncertain_s, _LEAST_S)
        if per_iteration_s < floor_s or late.late_s < _TIMES * others:
            continue
        phase, seconds = max(late.phases_s.items(), key=lambda item: item[1])
        if late.latest_in < _AS_A_RULE * late.iterations and seconds < _IN_ONE_PHASE * late.late_s:
            continue
        yield Finding(
            where=each.where,
            message=f"makes the others wait: it is late by {per_iteration_s * 1e3:.3g} ms in each iteration, "
            f"{seconds / late.late_s:.0%} of it in {phase}",
            remedy=_REMEDIES.get(phase, _OTHERWISE),
            evidence=(
                Evidence(
                    "late", f"{late.late_s:.3f} s in {late.iterations} iterations", f"as the others, {others:.3f} s"
                ),
                Evidence("waiting of the other ranks for it", f"{late.cost_s:.3f} s"),
            ),
        )
