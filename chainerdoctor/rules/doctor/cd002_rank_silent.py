"""CD002: rank silent."""

from __future__ import annotations

from typing import Dict, Iterator, List, Tuple

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.mpi import LauncherOutcome, RankOutcome
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Snapshot

_MESSAGES = {
    "silent": "said nothing",
    "partial": "began its report and never finished it",
    "died": "died before it had finished its report",
}


@rule("CD002", Severity.ERROR, needs=(RankOutcome,), since="0.1")
def rank_silent(snapshot: Snapshot) -> Iterator[Finding]:
    """A rank handed in nothing, or only the beginning of its report.

    Why it hurts: a rank that cannot even report will not train. The launcher did not start it, its node is gone, or
    it hung or died on the way.

    How to mend it: read the launcher's last words in the evidence, then start one process on that node by hand (ssh
    NODE hostname; mpiexec -n 1 -hosts NODE hostname).
    """
    launcher = next((seen.fact for seen in snapshot.all(LauncherOutcome)), None)
    victims = sorted(seen.fact.rank for seen in snapshot.all(RankOutcome) if seen.fact.state == "cut")
    by_end: Dict[Tuple[str, str, str], List[int]] = {}
    for seen in snapshot.all(RankOutcome):
        if seen.fact.state in _MESSAGES:
            by_end.setdefault((seen.node, seen.fact.state, seen.fact.detail), []).append(seen.fact.rank)
    for (node, state, detail), ranks in sorted(by_end.items()):
        who = rank_list(sorted(ranks))
        evidence = [Evidence(who, detail, "a whole report")]
        if state == "died" and victims:
            evidence.append(Evidence(rank_list(victims), "ended by the launcher because of it"))
        if launcher is not None:
            ended = (
                "was ended at the deadline" if launcher.exit_status is None else f"exit status {launcher.exit_status}"
            )
            evidence.append(Evidence(launcher.launcher, f"{ended} after {launcher.took_s:.1f} s"))
            if launcher.last_words:
                evidence.append(Evidence("its last words", launcher.last_words))
        none_started = len(ranks) == len(snapshot.all(RankOutcome)) and launcher is not None and launcher.exit_status
        yield Finding(
            where=f"{node}/{who}" if node else who,
            message="said nothing: the launcher failed and started no rank" if none_started else _MESSAGES[state],
            remedy="Read the launcher's last words and start one process by hand: mpiexec -n 1 hostname."
            if none_started
            else "Start one process there by hand (mpiexec -n 1 -hosts NODE hostname) and look at its node's dmesg.",
            evidence=tuple(evidence),
        )
