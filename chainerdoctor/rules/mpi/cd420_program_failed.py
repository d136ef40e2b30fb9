"""CD420: program failed."""

from __future__ import annotations

import signal
from typing import Iterator, List

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.run import ProgramEnd
from chainerdoctor.facts.stall import StallWatch, Whereabouts
from chainerdoctor.findings import Evidence, Finding, Severity
from chainerdoctor.rules import rule
from chainerdoctor.snapshot import Sighting, Snapshot


@rule("CD420", Severity.ERROR, needs=(ProgramEnd,), since="0.1")
def program_failed(snapshot: Snapshot) -> Iterator[Finding]:
    """The program raised an exception on a rank, left with an exit code other than 0, or was ended from outside.

    Why it hurts: one rank that ends early leaves the others waiting in their next collective, or has them ended by the
    launcher; their own messages are consequences.

    How to mend it: look at the rank that ended first, at the place named. A rank that was killed without a word often
    met the kernel's out-of-memory killer: dmesg on its node says so.
    """
    bad = [seen for seen in snapshot.all(ProgramEnd) if seen.fact.how not in ("returned", "stopped") and seen.fact.code]
    bad += [seen for seen in snapshot.all(ProgramEnd) if seen.fact.how == "cut" and seen.fact.code is None]
    if any(seen.fact.aborted for seen in snapshot.all(StallWatch)):
        bad = [seen for seen in bad if seen.fact.how != "cut"]  # ended by the stall autopsy, which says why
    first = {seen.rank for seen in snapshot.all(Whereabouts) if seen.fact.state == "died"}
    raised = [seen for seen in bad if seen.fact.how in ("raised", "exit", "cannot run")]
    # Where one rank raised, those that were cut are its victims.
    for seen in raised:
        yield _finding(seen, bad)
    stopped = any(seen.fact.how == "stopped" for seen in snapshot.all(ProgramEnd))
    if not raised and not stopped:
        for seen in bad:
            if not first or seen.rank in first:  # others were ended for it
                yield _finding(seen, bad)


def _finding(seen: Sighting[ProgramEnd], bad: List[Sighting[ProgramEnd]]) -> Finding:
    end = seen.fact
    evidence = [Evidence("iterations completed", str(end.iterations))]
    if end.error:
        evidence.append(Evidence("error", end.error))
    if end.place:
        evidence.append(Evidence("place", end.place))
    victims = sorted(other.rank or 0 for other in bad if other.fact.how == "cut" and other is not seen)
    if victims and end.how != "cut":
        evidence.append(Evidence("ended with it", rank_list(victims)))
    return Finding(where=seen.where, message=_message(end), remedy=_remedy(end), evidence=tuple(evidence))


def _message(end: ProgramEnd) -> str:
    if end.how == "raised":
        return "the program raised an exception"
    if end.how == "exit":
        return f"the program left with exit code {end.code}"
    if end.how == "cannot run":
        return "there is no such program"
    if end.code is not None and end.code < 0:
        return f"the program was ended by {_signal(-end.code)}"
    return "the program ended without a word" + ("" if end.code is None else f", with exit code {end.code}")


def _remedy(end: ProgramEnd) -> str:
    if end.how == "cut":
        return (
            "Look at the kernel's log of that node (dmesg) for its out-of-memory killer, and at the scheduler's limits."
        )
    return "Mend the program at that place; the traceback is in its own output."


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
