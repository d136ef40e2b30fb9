"""Why ranks wait for each other: from where each of them is to one sentence. Pure.

A stall needs every living rank to wait in communication or to be stuck outside it, or a rank that is gone while others
wait for it. A rank that computes is working, however long it takes and whoever waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

from chainerdoctor.consensus import rank_list
from chainerdoctor.facts.stall import CommunicatorCall, Whereabouts

#: Kinds of stalls.
DIED, RAISED, RETURNED, DIFFER, SIZES, STUCK, TRANSFER, CROSSED = (
    "died",
    "raised",
    "returned",
    "differ",
    "sizes",
    "stuck",
    "transfer",
    "crossed",
)
#: After a rank died or raised, the others are given so long to get to where they wait for it, in seconds.
GRACE_S = 2.0
#: A rank that sleeps, or does nothing in an evaluation or extension, is given so many times the patience: programs wait
#: there for files and services.
LENIENCE = 10
_MPI = "MPI "
_PROGRAM_S_OWN = ("evaluation", "extension")
#: Operations whose size has to be the same on every rank.
_EQUAL_SIZES = frozenset({"multi_node_mean_grad", "bcast_data", "allreduce", "multi_node_mean"})
_SENDS = ("send", "send_obj")
_MESSAGES = (*_SENDS, "recv", "recv_obj")


@dataclass(frozen=True)
class Stall:
    """A verdict. ``ranks`` are those that it is about, ``evidence`` pairs of words and values."""

    kind: str
    sentence: str
    ranks: Tuple[int, ...]
    evidence: Tuple[Tuple[str, str], ...] = ()


Ranks = Mapping[int, Whereabouts]


def diagnose(ranks: Ranks, size: int, timeout_s: float, ended: bool = False) -> Optional[Stall]:
    """The stall that these ranks are in, or ``None``.

    ``ended``: the run is over, so that nobody has any time left to get somewhere.
    """
    living = {rank: seen for rank, seen in ranks.items() if seen.state in ("inside", "outside")}
    gone = {rank: seen for rank, seen in ranks.items() if seen.state in ("died", "raised")}
    patience_s = min(timeout_s, GRACE_S) if gone else timeout_s
    waiting = {rank: seen for rank, seen in living.items() if _waits(seen)}
    stuck = {rank: seen for rank, seen in living.items() if rank not in waiting and is_stuck(seen, timeout_s)}
    died = [rank for rank, seen in gone.items() if seen.state == "died"]
    idle = len(waiting) + len(stuck) == len(living)
    patient = idle and bool(living) and min(seen.since_s for seen in living.values()) >= patience_s
    # Calls that do not match may also return, with each other's data.
    mixed = ended and not living
    if not patient and not mixed and not (ended and gone):
        return None
    evidence = _evidence(ranks, size)
    for kind in (_differing, _sizes, _gone):
        if kind is _gone and not patient and not died:
            break  # CD420 tells of the exception; nobody has waited for that rank
        found = kind(ranks, waiting)
        if found is not None:
            return Stall(found.kind, found.sentence, found.ranks, (*found.evidence, *evidence))
    if not patient:
        return None
    found = _stuck(stuck, waiting) if stuck else _returned(ranks, waiting) or _waiting(waiting, ranks, size)
    return Stall(found.kind, found.sentence, found.ranks, (*found.evidence, *evidence))


def is_stuck(seen: Whereabouts, timeout_s: float) -> bool:
    """Whether a rank outside communication does nothing, and has done so for longer than one should wait."""
    lenient = seen.doing == "sleeping" or seen.phase in _PROGRAM_S_OWN
    if seen.phase == "data" or seen.doing == "frozen":
        lenient = False
    return seen.state == "outside" and seen.idle_s >= timeout_s * (LENIENCE if lenient else 1)


def _waits(seen: Whereabouts) -> bool:
    if seen.doing.startswith(_MPI):
        return True
    return seen.state == "inside" and seen.doing != "running"


def _present(seen: Whereabouts) -> Optional[CommunicatorCall]:
    last = seen.history[-1] if seen.history else None
    return last if last is not None and not last.done else None


# The kinds, from the one that explains most.


def _differing(ranks: Ranks, waiting: Ranks) -> Optional[Stall]:
    """Ranks that called different collectives as the same number of a communicator's row."""
    found = _first_difference(ranks, waiting, lambda call: (call.operation, call.peer))
    if found is None:
        return None
    sides = found[1]
    fewest = min(sides, key=lambda side: (len(side), -min(side)))
    parts = [_side(side, ranks, why=_why(side, ranks, sides)) for side in sorted(sides, key=lambda s: s is not fewest)]
    return Stall(DIFFER, "; ".join(_without_repeated_place(parts)), tuple(sorted(fewest)))


def _sizes(ranks: Ranks, waiting: Ranks) -> Optional[Stall]:
    """Ranks that called the same collective with different amounts of data."""
    found = _first_difference(
        ranks, waiting, lambda call: (call.size_bytes,) if call.operation in _EQUAL_SIZES else (call.index,)
    )
    if found is None or any(call.size_bytes < 0 for side in found[1] for call in side.values()):
        return None
    sides = found[1]
    fewest = min(sides, key=lambda side: (len(side), -min(side)))
    texts = []
    for side in sorted(sides, key=lambda s: s is not fewest):
        call = next(iter(side.values()))
        lacking = f", without a gradient of {', '.join(call.lacking)}" if call.lacking else ""
        texts.append(f"{_are(side)} {_call(call)} with {call.size_bytes:,} bytes{lacking}")
    return Stall(SIZES, "; ".join(_without_repeated_place(texts)), tuple(sorted(fewest)))


def _first_difference(
    ranks: Ranks, waiting: Ranks, key: Callable[[CommunicatorCall], Tuple[object, ...]]
) -> Optional[Tuple[Tuple[str, int], List[Dict[int, CommunicatorCall]]]]:
    """The first place in a communicator's row where ranks differ by ``key``, with the sides.

    Only places that a rank waits at, or that come right before, matter: earlier ones were passed.
    """
    rows: Dict[Tuple[str, int], Dict[int, CommunicatorCall]] = {}
    for rank, seen in ranks.items():
        for call in seen.history:
            if call.operation not in _MESSAGES:
                rows.setdefault((call.communicator, call.index), {})[rank] = call
    for place, calls in sorted(rows.items(), key=lambda row: (row[0][1], row[0][0])):
        sides: Dict[Tuple[object, ...], Dict[int, CommunicatorCall]] = {}
        for rank, call in calls.items():
            sides.setdefault(key(call), {})[rank] = call
        if len(sides) > 1:
            return place, list(sides.values())
    return None


def _gone(ranks: Ranks, waiting: Ranks) -> Optional[Stall]:
    """A rank whose program raised, or whose process died."""
    for state, kind in (("raised", RAISED), ("died", DIED)):
        bad = sorted(rank for rank, seen in ranks.items() if seen.state == state)
        if bad and (waiting or state == "died"):
            seen = ranks[bad[0]]
            if state == "raised":
                said = f"raised {_first_line(seen.error)}" if ":" in seen.error else seen.error
                text = f"{rank_list(bad)} {said}{f' at {seen.place}' if seen.place else ''} and ended"
            else:
                text = f"{rank_list(bad)} died {_last_seen(seen)}"
            others = _sides_of(waiting)
            return Stall(kind, "; ".join([text, *others]), tuple(bad))
    return None


def _returned(ranks: Ranks, waiting: Ranks) -> Optional[Stall]:
    """A rank whose program ended as it should, while others still wait for it."""
    done = sorted(rank for rank, seen in ranks.items() if seen.state == "returned")
    if not done or not waiting:
        return None
    iterations = sorted({ranks[rank].iteration for rank in done})
    text = f"{rank_list(done)} {'has' if len(done) == 1 else 'have'} ended after {_count(iterations[-1], 'iteration')}"
    return Stall(RETURNED, "; ".join([text, *_sides_of(waiting)]), tuple(done))


def _stuck(stuck: Ranks, waiting: Ranks) -> Stall:
    texts = []
    for rank, seen in sorted(stuck.items()):
        where = {"data": "in data loading", "other": "in the program's own code"}.get(seen.phase, f"in {seen.phase}")
        state = "does not run at all" if seen.doing == "frozen" else "is blocked"
        at = f" at {seen.place}" if seen.place else ""
        texts.append(f"{rank_list([rank])} {state} {where}{at}, without using CPU for {seen.idle_s:.0f} s")
    evidence = [("innermost line", seen.line) for _, seen in sorted(stuck.items()) if seen.line][:3]
    shown = texts[:4] + ([f"so do {len(texts) - 4} more ranks"] if len(texts) > 4 else [])
    return Stall(STUCK, "; ".join([*shown, *_sides_of(waiting)]), tuple(sorted(stuck)), tuple(evidence))


def _waiting(waiting: Ranks, ranks: Ranks, size: int) -> Stall:
    """Everybody waits, in calls that do not contradict each other as far as is known."""
    unknown = sorted(set(range(size)) - set(ranks))
    texts = _sides_of(waiting)
    present = [_present(seen) for seen in waiting.values()]
    calls = {(call.communicator, call.index) for call in present if call is not None}
    collective = len(calls) == 1 and all(call is not None and call.operation not in _MESSAGES for call in present)
    ahead = _ahead(waiting)
    if unknown:
        texts.append(f"nothing is known of {rank_list(unknown)}")
        return Stall(CROSSED, "; ".join(texts), tuple(unknown))
    if collective and len(waiting) == size:
        return Stall(
            TRANSFER, f"{texts[0]}, all with the same call, and the data does not move", tuple(sorted(waiting))
        )
    if ahead:
        return Stall(CROSSED, "; ".join(texts), ahead)
    return Stall(CROSSED, "; ".join(texts), tuple(sorted(waiting)))


def _ahead(waiting: Ranks) -> Tuple[int, ...]:
    """Ranks that are not where most are."""
    groups = sorted(_groups(waiting), key=len)
    return tuple(sorted(groups[0])) if len(groups) > 1 and len(groups[0]) < len(groups[-1]) else ()


# Sentences.


def _why(side: Mapping[int, CommunicatorCall], ranks: Ranks, sides: Sequence[Mapping[int, CommunicatorCall]]) -> str:
    """Why these ranks do something else: a parameter that only they initialised, or a call that only they make."""
    call = next(iter(side.values()))
    others = [rank for other in sides if other is not side for rank in other]
    theirs = {each.path for rank in others for each in ranks[rank].initialised}
    if call.operation == "bcast_data":
        mine = [each for rank in side for each in ranks[rank].initialised if each.path not in theirs]
        if mine:
            last = mine[-1].iteration
            paths = list(dict.fromkeys(each.path for each in mine if each.iteration == last))
            shown = ", ".join(paths[:3]) + (f" and {len(paths) - 3} more" if len(paths) > 3 else "")
            return f" because {shown} {'was' if len(paths) == 1 else 'were'} initialised at iteration {last}"
    never = not any(
        past.place == call.place and past.via == call.via for rank in others for past in ranks[rank].history
    )
    if never and len(side) <= len(others) and call.place:
        have = "has" if len(others) == 1 else "have"
        return f", which {rank_list(sorted(others))} {have} not called"
    return ""


def _side(side: Mapping[int, CommunicatorCall], ranks: Ranks, why: str) -> str:
    call = next(iter(side.values()))
    if all(ranks[rank].state == "inside" and _present(ranks[rank]) == side[rank] for rank in side):
        return f"{_are(side)} {_call(call)}{why}"
    if call.done and all(ranks[rank].state in ("inside", "outside") for rank in side):
        # They passed it (a broadcast's root does) and wait elsewhere now.
        now = {rank: ranks[rank] for rank in side}
        return f"{rank_list(sorted(side))} called {_call(call)}{why}, and {_now(now)}"
    return f"{rank_list(sorted(side))} called {_call(call)}{why}"


def _now(ranks: Ranks) -> str:
    verb = "is" if len(ranks) == 1 else "are"
    texts = []
    for group in _groups(ranks):
        some = next(iter(group.values()))
        call = _present(some)
        texts.append(f"{verb} now in {_call(call)}" if call else f"{verb} now at {some.place or 'an unknown place'}")
    return ", ".join(texts)


def _are(ranks: Mapping[int, object]) -> str:
    return f"{rank_list(sorted(ranks))} {'is' if len(ranks) == 1 else 'are'} in"


def _call(call: CommunicatorCall) -> str:
    number = f" #{call.number}" if call.operation == "multi_node_mean_grad" else ""
    peer = ""
    if call.operation in _MESSAGES and call.peer >= 0:
        peer = f" {'to' if call.operation in _SENDS else 'from'} rank {call.peer}"
    via = f" of {call.via}" if call.via else ""
    at = f" at {call.place}" if call.place else ""
    return f"{call.operation}{number}{peer}{via}{at}"


def _groups(ranks: Ranks) -> List[Dict[int, Whereabouts]]:
    """Ranks that are in the same call, or at the same place."""
    groups: Dict[Tuple[object, ...], Dict[int, Whereabouts]] = {}
    for rank, seen in sorted(ranks.items()):
        call = _present(seen)
        if call is not None:
            key: Tuple[object, ...] = (call.operation, call.communicator, call.index, call.peer, call.place, call.via)
        else:
            key = (seen.doing, seen.place)
        groups.setdefault(key, {})[rank] = seen
    return list(groups.values())


def _sides_of(waiting: Ranks) -> List[str]:
    texts = []
    for group in _groups(waiting):
        some = next(iter(group.values()))
        call = _present(some)
        at = f" at {some.place}" if some.place else ""
        where = _call(call) if call is not None else f"{some.doing[len(_MPI) :]} of MPI{at}"
        texts.append(f"{_are(group)} {where}")
    return _without_repeated_place(texts)


def _without_repeated_place(texts: List[str]) -> List[str]:
    """A place is named where it first occurs, and not again at the end of the parts after it."""
    seen: List[str] = []
    made = []
    for text in texts:
        head, at, place = text.rpartition(" at ")
        if at and place in seen and "iteration" not in place:
            text = head
        seen += [word.rstrip(",;") for word in text.split() if ":" in word]
        made.append(text)
    return made


def _last_seen(seen: Whereabouts) -> str:
    call = _present(seen)
    if call is not None:
        return f"in {_call(call)}"
    phase = {"other": "the program's own code", "data": "data loading"}.get(seen.phase, seen.phase)
    at = f" at {seen.place}" if seen.place else ""
    return f"in {phase}{at}, iteration {seen.iteration + 1}"


def _first_line(error: str) -> str:
    return error.split("\n")[0].replace(", error stack:", "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"


def _evidence(ranks: Ranks, size: int) -> Tuple[Tuple[str, str], ...]:
    return tuple(_lines(ranks)) + ((("no ring of", rank_list(missing)),) if (missing := _missing(ranks, size)) else ())


def _missing(ranks: Ranks, size: int) -> List[int]:
    return sorted(set(range(size)) - set(ranks))


def _lines(ranks: Ranks) -> Iterator[Tuple[str, str]]:
    for rank, seen in sorted(ranks.items())[:16]:
        call = _present(seen)
        what = f"in {_call(call)}" if call is not None and seen.state == "inside" else f"{seen.state}, {seen.phase}"
        yield f"rank {rank}", f"{what}, iteration {seen.iteration + 1}, unchanged for {seen.since_s:.1f} s"
